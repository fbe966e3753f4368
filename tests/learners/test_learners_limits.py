"""Limits of passes are kept by every learner that has one, and the warning says the passes that were made."""

import inspect
import itertools
import re
import warnings

import numpy as np
import pytest
from support.registered import of_rows

import advcli
from advcli.core.errors import ConfigError, NotConvergedWarning
from advcli.learners.base import registry

K = 4
TREE = [["root", "a"], ["root", "b"], ["a", "0"], ["a", "1"], ["b", "2"], ["b", "3"]]
# options that stand for other algorithms or features of the same class
VARIANTS = [{}, {"features": "rbf"}, {"features": "threshold"}, {"bias": "free"}, {"method": "svorex"}, {"loss": "llw", "features": "rbf"}]
LIMITS = (1, 2, 3, 4, 6.5, 11, 30)


def limited():
    """Return the package's classes of learners with a limit of passes, by name."""
    classes = [registry.get(name) for name in registry] + [getattr(advcli, name) for name in advcli.__all__]
    return {
        each.__name__: each
        for each in classes
        if inspect.isclass(each)
        and each.__module__.startswith("advcli.")
        and "max_passes" in inspect.signature(each.__init__).parameters
        and of_rows(each)
    }


def made(cls, options):
    """Return an unfitted learner with these options and what it needs to know of the data; None where it has no such option."""
    has = inspect.signature(cls.__init__).parameters
    if set(options) - set(has):
        return None
    cost = np.arange(K)[:, None] - np.arange(K)
    needed = {"edges": TREE, "hierarchy": TREE, "confusion": 0.6 * np.eye(K) + 0.1}
    if cls.has_costs:
        needed["cost"] = np.abs(cost)
    return cls(**{"C": 30.0, "tol": 1e-9, **{name: value for name, value in needed.items() if name in has}, **options})


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(5)
    y = np.repeat(np.arange(K), 12)
    return random.normal(size=(len(y), 3)) + 0.5 * y[:, None], y, np.eye(K, dtype=int)[y] | (random.random((len(y), K)) < 0.3)


def fitted(learner, rows):
    """Fit to rows with one label, with sets of labels where the learner has them alone, or to sequences of four rows."""
    X, y, Y = rows
    if learner.has_groups:
        return learner.fit(X, y, groups=np.arange(len(y)) // 4)
    if isinstance(learner, advcli.MultilabelClassifier):
        return learner.fit(X, Y)
    return learner.fit(X, y.astype(str) if hasattr(learner, "edges") or hasattr(learner, "hierarchy") else y)


@pytest.mark.parametrize("name", sorted(limited()))
def test_no_limit_of_passes_is_exceeded(name, rows):
    stopped = 0
    for options, limit in itertools.product(VARIANTS, LIMITS):
        learner = made(limited()[name], {**options, "max_passes": limit})
        if learner is None:
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                fitted(learner, rows)
            except ConfigError:  # no such option, or features that it does not take
                continue
        certificate = learner.certificate_
        assert 0 <= certificate.passes <= limit
        if certificate.converged:
            continue
        stopped += 1
        assert certificate.status in ("max_passes", "stalled", "inexact_search", "not_convex")
        fits = [certificate, getattr(learner, "rejector_certificate_", certificate)]
        said = [str(each.message) for each in caught if each.category is NotConvergedWarning]
        assert 1 <= len(said) <= len(fits)
        for text, fit in zip(said, fits, strict=False):
            assert 0 <= fit.passes <= limit
            assert float(re.search(r"after ([\d.]+) passes", text)[1]) == pytest.approx(fit.passes, abs=0.5)
    assert stopped


@pytest.mark.parametrize("name", sorted(limited()))
def test_the_warning_names_the_callers_line(name, rows):
    learner = made(limited()[name], {"max_passes": 1})
    with pytest.warns(NotConvergedWarning) as caught:
        fitted(learner, rows)
    assert {each.filename for each in caught} == {__file__}
