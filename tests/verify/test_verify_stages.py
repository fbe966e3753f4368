"""The bounds of a rejector after a classifier, against another solver's optimum and against stored errors that are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from advcli import AbstainingClassifier
from advcli.verify.gap import LearnedRows
from advcli.verify.methods import method_of
from advcli.verify.surrogates import CannotError

ALPHA = 0.3


class _WithoutRejector:
    """A fit whose proof holds the first stage alone, as folders of before have it."""

    def __init__(self, model: Any) -> None:
        self.model, self.lam_ = model, model.lam_

    def proof(self, *rows: Any) -> dict[str, Any]:
        return {name: array for name, array in self.model.proof(*rows).items() if not name.startswith("rejector")}


@pytest.fixture(scope="module")
def fitted() -> Any:
    random = np.random.default_rng(1)
    X = random.normal(size=(60, 2))
    y = np.argmax(np.column_stack([X, -X.sum(axis=1)]) + 1.2 * random.normal(size=(60, 3)), axis=1)
    X[1], y[1] = X[0], y[0]
    weight = random.integers(1, 4, size=60).astype(float)
    model = AbstainingClassifier("two_stage", alpha=ALPHA, tol=1e-7).fit(X, y, sample_weight=weight)
    return X, y, weight, model


def bounds(fitted: Any, **changed: Any) -> Any:
    X, y, weight, model = fitted
    method = method_of({"name": "two_stage", "alpha": ALPHA}, list("abc"), False, None)
    features = method.score_map({"name": "linear"}, None, X)
    return method.bounds(features, LearnedRows(y, weight, weight, None), model.lam_, {**model.proof(X, y, weight), **changed})


def test_both_stages_are_proved_and_the_rejector_is_that_of_its_definition(fitted: Any) -> None:
    X, y, weight, model = fitted
    proved = bounds(fitted)
    for each, certificate in ((proved, model.certificate_), (proved.stages["rejector"], model.rejector_certificate_)):
        assert each.primal.high == pytest.approx(certificate.primal, rel=1e-9)
        assert each.dual.low == pytest.approx(certificate.dual, rel=1e-9)
        assert certificate.converged
    Z, wrong = np.column_stack([X, np.ones(60)]), np.argmax(model.potentials(X), axis=1) != y
    assert 5 < wrong.sum() < 55

    def smooth(v: Any, width: float) -> float:
        def hinge(m: Any) -> Any:
            return width * np.logaddexp(0.0, (1.0 - m) / width)

        r = Z @ v
        return float(0.5 * model.lam_ * v @ v + weight @ (ALPHA * hinge(r) + wrong * hinge(-r)) / weight.sum())

    point = np.zeros(3)
    for width in (0.1, 0.01, 0.001):
        point = minimize(smooth, point, args=(width,)).x
    scale = weight.sum() / (weight @ (ALPHA + wrong))  # the certificate's mean is over the weights of both hinges
    assert model.rejector_certificate_.primal == pytest.approx(scale * smooth(point, 1e-5), rel=1e-3)


def test_other_arrays_prove_no_more_and_errors_that_are_none_are_refused(fitted: Any) -> None:
    X, y, weight, model = fitted
    proof, certificate = model.proof(X, y, weight), model.rejector_certificate_
    stored = proof["rejector_r"]
    shifted = stored.copy()
    shifted[:, :2] = np.random.default_rng(0).uniform(-1.0, 2.0, size=(60, 2))
    assert bounds(fitted, rejector_r=shifted).stages["rejector"].dual.low < certificate.dual
    assert bounds(fitted, rejector_theta=1.1 * proof["rejector_theta"]).stages["rejector"].primal.high > certificate.primal
    for row in (int(np.argmax(stored[:, 2])), int(np.argmin(stored[:, 2]))):
        other = stored.copy()
        other[row, 2] = 1.0 - other[row, 2]
        with pytest.raises(ValueError, match="errors that are none"):
            bounds(fitted, rejector_r=other)
    with pytest.raises(CannotError, match="kept of the rejector"):
        bounds((X, y, weight, _WithoutRejector(model)))
    with pytest.raises(ValueError, match="shape"):
        bounds(fitted, rejector_r=stored[:, :2])
