"""Fig. 1 of louche2015 within the bands that an independent prototype measured (docs/notes/misprints.md, section 5)."""

import numpy as np
import pytest

from advcli import PerceptronClassifier, UMAClassifier
from advcli.data import load
from advcli.data.labels.noise import corrupt, make_confusion
from advcli.metrics import compute

pytestmark = pytest.mark.filterwarnings("ignore::advcli.data.labels.confusion.IllConditionedWarning")

FAMILY = {"name": "louche2015", "told_step": None, "max_condition": 30}


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    options = {"name": "louche_toy", "source": "louche_toy", "runs": 24, "test_rows": 5000}
    return load(options, tmp_path_factory.mktemp("data"), author_splits=True)


def rates(toy, classifier, step, told=None):
    """Confusion rates over the runs, on the scale of the figures."""
    found = []
    for run, (train, test) in enumerate(toy.splits):
        confusion = make_confusion({**FAMILY, "step": step, "told_step": told}, 10, run)
        model = classifier(confusion.assumed).fit(toy.X[train], corrupt(toy.y[train], confusion.true, run))
        found.append(compute("confusion_rate", toy.y[test], model.predict_codes(toy.X[test]), 10, {}))
    return np.array(found)


def uma(C):
    return UMAClassifier(C, n_classes=10, max_updates=300)


def uma_printed(C):
    """The orientation as printed: rows normalised, not transposed."""
    return UMAClassifier(C.T / C.T.sum(axis=0), n_classes=10, max_updates=300)


def perceptron(C):
    return PerceptronClassifier(n_classes=10)


@pytest.mark.slow
def test_robustness_to_noise(toy):
    first, last = rates(toy, uma, 1), rates(toy, uma, 20)
    assert 0.2 < first.mean() < 0.8  # text of the paper: 0.5
    assert 2.0 < last.mean() < 2.45  # 2.25
    for step, mine in ((1, first), (5, rates(toy, uma, 5)), (20, last)):
        difference = rates(toy, perceptron, step) - mine
        assert difference.mean() > 2 * difference.std(ddof=1) / np.sqrt(len(difference))
    assert 1.4 < rates(toy, perceptron, 1).mean() < 2.0  # 1.7


@pytest.mark.slow
def test_a_wrong_confusion_matrix_costs(toy):
    right = rates(toy, uma, 10).mean()
    for told in (1, 4, 8, 12, 15, 20):
        assert rates(toy, uma, 10, told).mean() > right + 0.3


@pytest.mark.slow
def test_the_printed_orientation_is_worse(toy):
    difference = rates(toy, uma_printed, 7) - rates(toy, uma, 7)
    assert difference.mean() > 3 * difference.std(ddof=1) / np.sqrt(len(difference))
