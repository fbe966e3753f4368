"""Binary problems with a free bias each, by the solver of threshold models.

A binary problem with scores v.x + b and margins m is a threshold model of two classes. Its one threshold is -b, at the scores
v.x + s (1 - m): the hinge m - s (v.x + b) is 1 - s (v.x + s (1 - m) + b). Its dual numbers meet sum_i p_i a_i s_i = 0.
"""

from __future__ import annotations

import time

import numpy as np

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
    problems.check_features()
    features, m = problems.features, len(problems.labels)
    every: ScoredRows = KernelRows(features.matrix) if isinstance(features, KernelMap) else ExplicitRows(features.X)
    theta, R = np.zeros((features.shape[0] + 1, m)), np.zeros((every.n, m))
    before: list[ThresholdPoint | None] = [None] * m if start is None else start.memory.get("points", [None] * m)
    points: list[ThresholdPoint | None] = [None] * m
    steps, status = 0, "converged"
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
        rows = every.among(examples)
        sample = 1.0 if problems.sample_weight is None else problems.sample_weight[examples]
        codes, weight = np.asarray(label > 0, dtype=np.intp), problems.weights[q, examples] * sample
        problem = ThresholdProblem(codes, np.ones((2, 1)), weight, problems.C, "each", label * (1.0 - margin))
        points[q] = point = minimise(problem, rows, limits.tol, limits.max_passes, moved(problem, rows, before[q]))
        theta[:-1, q], theta[-1, q] = every.lifted(point.v, examples), -point.eta[0]
        R[examples, q] = point.alpha[0] / (problems.C * sample)
        steps += point.steps
        status = max(status, point.status, key=_STATUS.index)
    ran = "newton" if any(point.solver == "newton" for point in points if point is not None) else "pairs"
    seconds = time.perf_counter() - began
    return Solution(theta, R, problems.lam, ran, steps / max(m, 1), seconds, status, {"points": points})
