import numpy as np
import pytest
from sklearn.metrics import accuracy_score, mean_absolute_error, mean_squared_error

from advcli import metrics
from advcli.core.errors import ConfigError
from advcli.metrics import meaning

Y = np.array([0, 1, 2, 2, 1, 0, 3])
P = np.array([0, 2, 2, 0, 1, 1, 3])


def value(name, y=Y, p=P, k=4, **options):
    return metrics.compute(name, y, p, k, options)


def test_a_complement_is_one_minus_the_metric():
    pairs = [(name, meaning(name).complement) for name in metrics.names() if meaning(name).complement]
    assert pairs == [("error", "accuracy")]
    for name, complement in pairs:
        assert metrics.shown_as(name).name == complement
        assert metrics.shown_value(name, value(name)) == pytest.approx(value(complement))
    assert metrics.shown_value("mae", 0.25) == 0.25


def test_against_scikit_learn():
    assert value("accuracy") == accuracy_score(Y, P)
    assert value("error") == pytest.approx(1 - accuracy_score(Y, P))
    assert value("mae") == pytest.approx(mean_absolute_error(Y, P))
    assert value("mse") == pytest.approx(mean_squared_error(Y, P))


def test_abstentions():
    p = np.array([0, 4, 4, 0, 1, 1, 3])  # right, abstain, abstain, wrong, right, wrong, right
    assert value("abstention_loss", p=p, alpha=0.25) == (0.25 * 2 + 2) / 7
    assert value("abstain_rate", p=p) == 2 / 7
    assert value("accuracy_accepted", p=p) == 3 / 5
    assert np.isnan(value("accuracy_accepted", p=np.full(7, 4)))
    assert value("accuracy_accepted") == value("accuracy")
    assert value("error", p=p) == 4 / 7
    assert np.isnan(value("mae", p=p))
    with pytest.raises(ConfigError, match="alpha"):
        value("abstention_loss", p=p)


def test_cost_is_read_by_prediction_and_truth():
    costs = [[0, 1, 8, 2], [4, 0, 3, 5], [7, 6, 0, 9], [10, 11, 12, 0], [0.5, 0.25, 0.75, 1]]  # the last row is an abstention's
    p = np.array([0, 2, 4, 0, 1, 1, 3])
    assert value("cost", p=p, cost_matrix=costs) == (0 + 6 + 0.75 + 8 + 0 + 4 + 0) / 7
    square = np.array(costs)[:4]
    assert value("cost", cost_matrix=square) == (0 + 6 + 0 + 8 + 0 + 4 + 0) / 7
    assert value("cost", cost_matrix=square.T) != value("cost", cost_matrix=square)
    with pytest.raises(ConfigError, match="loss=general"):
        value("cost")


def test_confusion_rate_by_hand():
    # true 0: half predicted 1; true 1: half predicted 2; true 2: half predicted 0; true 3: right
    assert value("confusion_rate") == pytest.approx(np.sqrt(3 * 0.25))
    assert value("confusion_rate_scaled") == pytest.approx(np.sqrt(3 * 0.25) / 2)
    assert value("confusion_rate", y=Y, p=Y) == 0
    everything_wrong = np.array([1, 2, 3, 3, 2, 1, 0])
    assert value("confusion_rate_scaled", p=everything_wrong) == pytest.approx(1)


def test_confusion_rate_is_by_true_class():
    # both rows of class 0 are taken for class 1; of the four rows of class 1 one is taken for class 0
    y, p = np.array([0, 0, 1, 1, 1, 1]), np.array([1, 1, 0, 1, 1, 1])
    assert value("confusion_rate", y=y, p=p, k=2) == pytest.approx(np.sqrt(1.0 + 0.25**2))


def test_unknown_name_gets_the_nearest():
    with pytest.raises(ConfigError, match="did you mean error"):
        value("eror")


@pytest.mark.parametrize("name", [name for name in metrics.names() if meaning(name).is_count])
def test_counts_are_counts(name):
    rng = np.random.default_rng(0)
    for n in (7, 49, 1797):
        y, p = rng.integers(5, size=n), rng.integers(5, size=n)
        total = value(name, y, p, 5, scores=rng.normal(size=(n, 5)), sequences=np.arange(n) // 3, relations=y > 2) * n
        assert abs(total - round(total)) < 1e-6


def test_direction():
    assert meaning("accuracy").higher_is_better
    assert not meaning("error").higher_is_better
    assert value("accuracy", Y, Y) > value("accuracy")
    assert value("error", Y, Y) < value("error")


TAGS = ("B-loc", "B-per", "I-loc", "I-per", "O")


def entities(truth, predicted, groups=None):
    y, p = ([TAGS.index(tag) for tag in text.split()] for text in (truth, predicted))
    groups = np.zeros(len(y), dtype=int) if groups is None else np.array(groups)
    return value("entity_f1", np.array(y), np.array(p), len(TAGS), labels=TAGS, sequences=groups)


def test_entities_are_right_as_a_whole_and_of_their_kind():
    assert entities("B-per I-per O B-loc", "B-per I-per O B-loc") == 1.0
    assert entities("B-per I-per O B-loc", "B-per O O B-loc") == 0.5
    assert entities("B-per I-per O", "B-loc I-loc O") == 0.0
    assert entities("B-per I-per O", "I-per I-per O") == 1.0  # an I that continues nothing begins
    assert entities("B-per B-per O", "B-per I-per O") == 0.0
    assert entities("B-per I-loc O", "B-per I-per O") == 0.0
    assert entities("B-per B-per O", "B-per O O") == pytest.approx(2 / 3)
    assert entities("O O", "O O") == 1.0
    assert entities("O O", "O B-per") == 0.0


def test_an_entity_ends_with_its_sequence():
    assert entities("B-per I-per", "B-per I-per", [0, 1]) == 1.0
    assert entities("B-per I-per", "B-per B-per", [0, 1]) == 1.0
    assert entities("B-per I-per", "B-per B-per", [0, 0]) == 0.0


def test_entities_against_spans_that_are_collected_by_regular_expressions():
    import re

    random = np.random.default_rng(0)

    def spans(tags):
        found = set()
        for kind in ("per", "loc"):
            letters = "".join(tag[0] if tag[2:] == kind else "O" for tag in tags)
            found |= {(match.start(), match.end(), kind) for match in re.finditer("[BI]I*", letters)}
        return found

    for _ in range(200):
        y, p = random.integers(5, size=(2, 12))
        a, b = (spans([TAGS[code] for code in each]) for each in (y, p))
        expected = 2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0
        assert entities(" ".join(TAGS[code] for code in y), " ".join(TAGS[code] for code in p)) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
def test_right_heads_and_whole_trees_are_counted_by_hand(seed):
    rng = np.random.default_rng(seed)
    y, groups = rng.integers(3, size=40), np.sort(rng.integers(12, size=40))
    p = np.where(rng.random(40) < 0.7, y, rng.integers(4, size=40))
    assert value("unlabelled_attachment", y, p, 3, sequences=groups) == np.mean(y == p)
    assert value("whole_trees", y, p, 3, sequences=groups) == pytest.approx(
        np.mean([(y == p)[groups == s].all() for s in np.unique(groups)])
    )
    assert value("whole_trees", y, y, 3, sequences=groups) == 1.0
    right = p > 0
    assert value("labelled_attachment", y, p, 3, sequences=groups, relations=right) == np.mean((y == p) & right)


def test_the_measure_of_entities_says_what_it_needs():
    with pytest.raises(ConfigError, match="rows that form sequences"):
        value("entity_f1", labels=TAGS)
    with pytest.raises(ConfigError, match="the class 'per' is none"):
        value("entity_f1", labels=("O", "per"), sequences=np.zeros(7), y=Y * 0, p=P * 0, k=2)
