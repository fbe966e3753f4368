"""Binary problems with a free bias each, by the solver of threshold models.

A binary problem with scores v.x + b and margins m is a threshold model of two classes whose one threshold is -b, at the scores
v.x + s (1 - m): the hinge m - s (v.x + b) is 1 - s (v.x + s (1 - m) + b). Its dual numbers meet sum_i p_i a_i s_i = 0.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ...core.errors import IncompatibleError
from ...core.typing import Labels
from ...features.base import KernelMap
from ...problems.binary import BinaryProblems
from ...problems.risk import Solution
from ...problems.threshold import ThresholdProblem
from .. import Limits
from .scored_rows import ExplicitRows, KernelRows, ScoredRows
from .threshold import ThresholdPoint, minimise, moved

_STATUS = ("converged", "stalled", "max_passes", "max_seconds")


def solve_free(problems: BinaryProblems, limits: Limits, start: Solution | None = None) -> Solution:
    """Return parameters, the biases as their last row, and dual numbers (n, m) of all problems, each to the relative gap ``limits.tol``.

    Features are linear or a kernel whose matrix fits into memory; a start is of the same problems at another lambda. ``max_passes`` counts
    the Newton steps of a problem, n pairs that move as one, ``max_seconds`` is looked at between problems; ``passes`` is the mean over the
    problems, ``status`` the worst.
    """
    began = time.perf_counter()
    features, m, n = problems.features, len(problems.labels), problems.features.n_rows
    kernel = isinstance(features, KernelMap)
    if isinstance(features, KernelMap) and not features.whole:
        raise IncompatibleError(
            f"{n} rows", "the whole kernel matrix in memory", f"give features.memory_mb={8 * 2 * n * n / 2**20:.0f} or features=nystroem"
        )
    theta, R = np.zeros((features.shape[0] + 1, m)), np.zeros((n, m))
    before: list[ThresholdPoint | None] = [None] * m if start is None else start.memory.get("points", [None] * m)
    points: list[ThresholdPoint | None] = [None] * m
    steps, status, ran = 0, "converged", "pairs" if kernel else "newton"
    for q in range(m):
        if time.perf_counter() - began > limits.max_seconds:
            status = "max_seconds"
            break
        examples = np.flatnonzero(problems.bounds[q])
        label = problems.labels[q, examples].astype(np.float64)
        margin = np.ones(len(examples)) if problems.margins is None else problems.margins[q, examples]
        if not (label > 0).any() or not (label < 0).any():  # a bias alone keeps all margins
            theta[-1, q] = label[0] * max(float(margin.max()), 0.0) if len(examples) else 0.0
            continue
        rows = _rows(features, examples)
        sample = 1.0 if problems.sample_weight is None else problems.sample_weight[examples]
        codes, weight = np.asarray(label > 0, dtype=np.intp), problems.weights[q, examples] * sample
        problem = ThresholdProblem(codes, np.ones((2, 1)), weight, problems.C, "each", label * (1.0 - margin))
        points[q] = point = minimise(problem, rows, limits.tol, limits.max_passes, moved(problem, rows, before[q]))
        theta[examples if kernel else slice(0, -1), q] = point.v
        theta[-1, q] = -point.eta[0]
        R[examples, q] = point.alpha[0] / (problems.C * sample)
        steps += point.steps
        status = max(status, point.status, key=_STATUS.index)
        ran = point.solver if ran == "pairs" else ran
    seconds = time.perf_counter() - began
    return Solution(theta, R, problems.lam, ran, steps / max(m, 1), seconds, status, {"points": points})


def _rows(features: Any, examples: Labels) -> ScoredRows:
    """Return the rows of one problem."""
    every = len(examples) == features.n_rows
    if isinstance(features, KernelMap):
        return KernelRows(features.matrix if every else np.ascontiguousarray(features.matrix[np.ix_(examples, examples)]))
    return ExplicitRows(features.X if every else features.X[examples])
