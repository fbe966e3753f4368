"""Searches side by side: all of them at every row of every round of one training by cutting planes (choi2018, tables 4.1 and 5.1)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.errors import ConfigError
from ...solvers.cutting_planes import Cuts, Planes, Visits
from .label_sets import SearchedSets
from .spaces.searches import SEARCHES, Found

LEADING = "angular"
"""The search whose labels the training takes."""

RATIO = 0.999
"""Share of its upper bound at which the angular search ends, as in the thesis."""

WIDTH = 1e-2
"""Relative width of the range of l at which the bisecting search ends; the thesis states none."""

_MOST_ROUNDS = 200
_INNER_GAP = 1e-4  # of the stored planes between two rounds


class Trial(NamedTuple):
    """One search at one row.

    Attributes
    ----------
    round, row : int
    search : str
    calls : int
        Calls of the oracle.
    seconds : float
        Processor time.
    value, upper : float
        What it found, and its bound.
    slack : float
        The row's slack over the planes known so far.
    """

    round: int
    row: int
    search: str
    calls: int
    seconds: float
    value: float
    upper: float
    slack: float


def try_searches(structure: SearchedSets, lam: float, epsilon: float, names: Sequence[str], seed: int = 0) -> list[Trial]:
    """Train slack rescaling by n-slack cutting planes with labels of the angular search, and try every search at each row of each round.

    A round adds the label of every row whose value exceeds the row's slack by more than ``epsilon``; the training ends when there is none.
    Sarawagi and Gupta's search gets that slack, the angular search starts from the slope of the label that it found last at the row.

    Parameters
    ----------
    structure : SearchedSets
    lam : float
        Lambda.
    epsilon : float
        The violation that makes a label new.
    names : sequence of str
        Searches, ``angular`` among them.
    seed : int
        Of the order of the pairwise steps.

    Returns
    -------
    list of Trial
    """
    if LEADING not in names:
        raise ConfigError(f"searches {', '.join(names)} must have {LEADING} among them: the training takes its labels")
    planes, visits = Planes(structure), Visits(structure, seed)
    W, shared = planes.weights(lam)
    start = np.full(structure.n, 1.0 / structure.K)
    everything, trials = np.arange(structure.n), list[Trial]()
    for turn in range(_MOST_ROUNDS):
        slack = np.zeros(structure.n)
        np.maximum.at(slack, planes.owner, planes.values(W, shared))
        new: list[tuple[int, Found]] = []
        for row, space in enumerate(structure.spaces(np.asarray(structure.X @ W.T), shared, everything)):
            options = {LEADING: {"start": start[row], "ratio": RATIO}, "bisecting": {"tol": WIDTH}, "sarawagi": {"xi": float(slack[row])}}
            for name in names:
                clock = time.process_time()
                found = SEARCHES[name](space, structure.psi, **options.get(name, {}))
                seconds = time.process_time() - clock
                trials.append(Trial(turn, row, name, found.calls, seconds, found.value, found.upper, float(slack[row])))
                if name == LEADING and found.value > 0.0:
                    start[row] = (found.point.h + 1.0) / found.point.g
                    if found.value > slack[row] + epsilon:
                        new.append((row, found))
        if not new:
            break
        rows = np.array([row for row, _ in new])
        cuts: Cuts = structure.cuts([found for _, found in new], rows)
        planes.add(cuts, rows)
        visits.run(planes, lam, W, shared, _INNER_GAP)
        planes.feasible()
        W, shared = planes.weights(lam)
    return trials
