"""The checker's bound of the optimum never lies above it, whatever r it is given, and is the dual value where r is feasible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from advcli import SurrogateClassifier
from advcli.features import make_features
from advcli.losses import make_loss
from advcli.problems.risk import Problem
from advcli.verify.gap import LearnedRows, ScoreMap, bound
from advcli.verify.surrogates import Surrogate

MAPS = {
    "linear": {},
    "threshold": {},
    "rbf": {"gamma": 0.4},
    "poly": {"gamma": 0.4, "degree": 2},
    "rbf_threshold": {"gamma": 0.4},
    "linear box": {"moments": "box", "tolerance": 0.5},
    "threshold box": {"moments": "box", "tolerance": 0.5},
}


def points(r: np.ndarray, y: np.ndarray, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Return dual points near and far from the optimal one, many of them outside of its domain."""
    truth = np.eye(3)[y]
    return {
        # the dearest adversary, whose label totals are not the sample's: free thresholds forbid it
        "ends": np.array([0.5, 0.0, 0.5]) - truth,
        "random": random.dirichlet(np.ones(3), len(y)) - truth,
        "twice": 2.0 * r,
        "lower": r - 0.0021,
        "higher": r + 0.0021,
        "noise": r + 0.01 * random.normal(size=r.shape),
        "one row": np.where(np.arange(len(y))[:, None] == 3, 5.0, r),
    }


# free thresholds take no ww and llw
@pytest.mark.parametrize(
    ("name", "loss"),
    [
        (name, loss)
        for name in MAPS
        for loss in ("absolute", "zero_one", "cs", "ww", "llw")
        if "threshold" not in name or loss[-2:] not in ("ww", "lw")
    ],
)
@pytest.mark.parametrize("C", [0.05, 20.0])
def test_no_dual_point_proves_too_much(name: str, loss: str, C: float) -> None:
    features = name.partition(" ")[0]
    random = np.random.default_rng(7)
    X = random.normal(size=(40, 2)) + 0.1
    y = np.clip(np.round(X[:, 0] + 0.7 * random.normal(size=40)) + 1, 0, 2).astype(int)
    s = random.integers(1, 4, 40).astype(float)
    solver = "lbfgs" if "box" in name and loss != "llw" else "auto"
    tol = 1e-4 if "box" in name else 1e-7
    fit = SurrogateClassifier(loss, C=C, tol=tol, features=features, features_options=MAPS[name] or None, n_classes=3, solver=solver)
    fit.fit(X, y, sample_weight=s)
    certificate = fit.certificate_
    theta, r = fit.theta_, fit.solution_.R[fit.rows_]
    if not (fit.features_ is None or fit.features_.euclidean):
        # the fit's rows are in another order than those here; no two are equal
        order = np.concatenate([fit.rows_, np.arange(40, len(theta))])
        theta = theta[order]
    mine, map_ = Surrogate({"name": loss}, 3, ["0", "1", "2"]), ScoreMap({"name": features, **MAPS[name]}, None, X, 3)
    lam = 0.0 if "box" in name else 1.0 / (C * s.sum())

    def bounds(R: np.ndarray):
        return bound(map_, mine, LearnedRows(y, s, None, None), lam, {"theta": theta, "r": R})

    truth = bounds(r)
    assert truth.primal.low <= certificate.primal <= truth.primal.high
    assert truth.primal.rad < 1e-10
    assert certificate.dual - 1e-9 < truth.dual.low <= certificate.dual + 1e-12
    for what, R in points(r, y, random).items():
        assert bounds(R).dual.low <= certificate.primal + 1e-13, what
    # the audit's forgery: a shift by 0.0021 costs what it would have hidden
    assert bounds(r - 0.0021).dual.low < certificate.dual - (1e-6 if loss != "llw" else -1e-9)


@pytest.mark.parametrize("name", ["linear box", "threshold box"])
@pytest.mark.parametrize("loss", ["ww", "llw"])  # whose c is linear, so that the bound is sharp where r is scaled
def test_a_box_is_the_fits_own(name: str, loss: str) -> None:
    """Both values at points that no solver ends at; llw's linear weights count up to a shift of all classes."""
    random = np.random.default_rng(3)
    X, y = random.normal(size=(20, 2)), np.arange(20) % 3
    features = name.partition(" ")[0]
    rows = np.column_stack([X, np.ones(20)]) if features == "linear" else X
    chosen = make_features(features, rows, 3, **MAPS[name])
    problem = Problem(chosen, make_loss(loss, 3), y, 0.0, tolerance=chosen.tolerance(y, None))
    mine, map_ = Surrogate({"name": loss}, 3, ["0", "1", "2"]), ScoreMap({"name": features, **MAPS[name]}, None, X, 3)
    for _ in range(20):
        r = problem.loss.project(random.uniform(-1.0, 1.0, (20, 3)), y)
        theta = random.normal(size=chosen.shape)
        bounds_found = bound(map_, mine, LearnedRows(y, None, None, None), 0.0, {"theta": theta, "r": r})
        assert bounds_found.primal.high == pytest.approx(problem.primal(theta), rel=1e-9)
        assert bounds_found.dual.low == pytest.approx(problem.dual(problem.into_box(r)), rel=1e-9)
        if problem.centred:
            assert problem.primal(theta + random.normal(size=(3, 1))) == pytest.approx(problem.primal(theta), rel=1e-9)


@pytest.mark.parametrize("name", ["linear", "threshold", "rbf", "linear box"])
def test_what_r_was_moved_by_is_charged(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A point that was moved by m in L1 norm may have moments off by m max |J_i|, and that much less is proved."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(12, 2)), np.arange(12) % 3
    mine, map_ = Surrogate({"name": "zero_one"}, 3, ["0", "1", "2"]), ScoreMap({"name": name.partition(" ")[0], **MAPS[name]}, None, X, 3)
    r = random.dirichlet(np.ones(3), 12) - np.eye(3)[y]
    theta = np.zeros({"linear": (3, 3), "linear box": (3, 3), "threshold": 4, "rbf": (12, 3)}[name])
    near = mine.below(r, y, np.ones(12))
    bounds_found = []
    for moved in (0.0, 1e-3):
        monkeypatch.setattr(mine, "below", lambda R, y, w, moved=moved: replace(near, moved=np.full(12, moved)))
        bounds_found.append(bound(map_, mine, LearnedRows(y, None, None, None), 0.5, {"theta": theta, "r": r}).dual.low)
    # in a box the mean of c alone falls by 1e-3
    assert bounds_found[1] < bounds_found[0] - (2e-3 if "box" in name else 1e-4)


def test_a_cost_of_every_label_adds_to_the_bound_what_it_adds_to_the_optimum() -> None:
    """Also where r is shortened to bring its moments into the box: c(0), the cost at the sample's own labels, counts by the rest."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(12, 2)), np.arange(12) % 3
    r, map_ = random.dirichlet(np.ones(3), 12) - np.eye(3)[y], ScoreMap({"name": "linear", **MAPS["linear box"]}, None, X, 3)
    bounds_found = []
    for cost in (0.0, 0.5):
        mine = Surrogate({"name": "general", "matrix": (1.0 - np.eye(3) + cost).tolist()}, 3, ["0", "1", "2"])
        proof = {"theta": np.zeros((3, 3)), "r": r, "predictor": np.full((12, 3), 1 / 3)}
        bounds_found.append(bound(map_, mine, LearnedRows(y, None, None, None), 0.0, proof).dual.low)
    assert bounds_found[1] == pytest.approx(bounds_found[0] + 0.5, abs=1e-12)
    assert bounds_found[0] < make_loss("zero_one", 3).offset(r, y).mean() - 0.01


def test_what_breaks_the_constraints_of_free_thresholds_is_charged() -> None:
    """By hand: the labels' surplus moves to others, at most twice of it, at c's steepness of 1 and the longest row of J."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(12, 2)), np.arange(12) % 3
    r = random.dirichlet(np.ones(3), 12) - np.eye(3)[y]
    moved = np.abs(r.sum(axis=0)).sum()
    length = np.linalg.norm(X.T @ (r @ [1.0, 2.0, 3.0])) + 3.0 * np.linalg.norm(X, axis=1).max() * moved
    expected = (make_loss("zero_one", 3).offset(r, y).sum() - moved) / 12 - length**2 / (2 * 0.5 * 12**2)
    mine, map_ = Surrogate({"name": "zero_one"}, 3, ["0", "1", "2"]), ScoreMap({"name": "threshold"}, None, X, 3)
    bounds_found = bound(map_, mine, LearnedRows(y, None, None, None), 0.5, {"theta": np.zeros(4), "r": r}).dual.low
    assert moved > 0.1
    assert expected - 1e-9 < bounds_found <= expected


@pytest.mark.parametrize("name", ["linear", "threshold", "rbf", "linear box"])
def test_sparse_rows_prove_the_same(name: str) -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(90, 4)).clip(0.0), np.arange(90) % 3
    mine, options = Surrogate({"name": "zero_one"}, 3, ["0", "1", "2"]), {"name": name.partition(" ")[0], **MAPS[name]}
    r = random.dirichlet(np.ones(3), 90) - np.eye(3)[y]
    theta = random.normal(size={"linear": (5, 3), "linear box": (5, 3), "threshold": 6, "rbf": (90, 3)}[name])
    rows, proof = LearnedRows(y, None, None, None), {"theta": theta, "r": r}
    dense, thin = (bound(ScoreMap(options, None, Z, 3), mine, rows, 0.5, proof) for Z in (X, sparse.csr_array(X)))
    assert thin.primal.mid == pytest.approx(dense.primal.mid, rel=1e-13)
    assert thin.dual.mid == pytest.approx(dense.dual.mid, rel=1e-13)
