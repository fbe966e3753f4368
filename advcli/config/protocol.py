"""The evaluation protocol: one schema, which configurations are checked by and evaluation runs by."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from ..core.checks import FRACTION, NAME, NOT_NEGATIVE, POSITIVE, at_least, choice, refuse
from ..core.errors import ConfigError, UnknownNameError, nearest
from ..core.hyper import SCALES, axes

TESTS = ("corrected_ttest", "ttest", "wilcoxon")
"""Significance tests of the tables (`advcli.statistics.tests`)."""
CORRECTIONS = ("holm", "none")
"""Corrections of their marks for the number of methods in a row."""
PLAIN_SPLITS = ("random", "author", "official")
"""Rules of splits of which a cell says no more than their name."""
TOLERANCES = {"tol": POSITIVE, "search_tol": POSITIVE, "search_passes": at_least(1)}
"""Rules of what ends the fits of a group ``solver``; null in the latter two, of its searches, takes that of the fits."""


def _some(default: Any, about: Mapping[str, Any]) -> Any:
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class Protocol:
    """Splits, standardisation, search and significance test; conf/protocol/papers.yaml says what each value means.

    Grids (``stage1``, ``stage2``, ``extend``) are by axis: ``regularisation`` and the hyper-parameters of `advcli.core.hyper`. C stays
    fixed between folds and refit, so lambda = 1/(n C) follows the rows of each fit. ``stage2`` holds multipliers of the winner of stage 1,
    ``extend`` how far stage 1 goes on past an end that wins. ``standard_errors``: values so near the best one are as good, and the
    strongest regularisation among them is chosen; 1 is the one-standard-error rule (Breiman, Friedman, Olshen and Stone 1984). ``metric``
    None is the loss's own. ``rough_per_class`` rows train a rough classifier, whose predictions then are the training labels (Louche &
    Ralaivola 2015, section 4.2); ``labelled_share`` of the training rows also have known labels: the sample that estimates the confusion.
    """

    #: Keys that do not determine rows: how reports test.
    SILENT: ClassVar[tuple[str, ...]] = ("test", "alpha", "correction")
    open: ClassVar[bool] = False

    name: str = _some("standard", NAME)
    splits: str = _some("random", NAME)
    n_splits: int = _some(20, at_least(1))
    train_size: float = _some(0.7, FRACTION)
    folds: int = _some(5, at_least(2))
    holdout: float | None = _some(None, FRACTION)
    standardise: str = _some("fold", choice("fold", "train", "none"))
    regularisation: str = _some("C", choice(*SCALES))
    stage1: dict[str, list[float]] = field(default_factory=dict)
    stage2: dict[str, list[float]] = field(default_factory=dict)
    search: str = _some("first_split", choice("first_split", "every_split"))
    extend: dict[str, list[float]] = field(default_factory=dict)
    standard_errors: float = _some(0.0, NOT_NEGATIVE)
    metric: str | None = _some(None, NAME)
    metrics: list[str] = field(default_factory=list, metadata=NAME)
    learning_curve: list[float] | None = field(default=None, metadata=FRACTION)
    rough_per_class: int | None = _some(None, at_least(1))
    labelled_share: float = _some(0.05, FRACTION)
    rough_updates: int = _some(1000, at_least(1))
    test: str = _some("corrected_ttest", choice(*TESTS))
    alpha: float = _some(0.05, FRACTION)
    correction: str = _some("holm", choice(*CORRECTIONS))

    def __post_init__(self) -> None:
        for axis, limits in self.extend.items():
            if len(limits) != 2 or limits[0] > limits[1]:
                raise ConfigError(f"protocol.extend.{axis}={limits} is not valid; give [SMALLEST,LARGEST], or null")

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> Protocol:
        """Read the options of a group ``protocol`` that no configuration has checked; `ConfigError` names the first that is not valid."""
        known = {entry.name: entry for entry in fields(cls)}
        values = {key: value for key, value in options.items() if key != "description"}
        for key, value in values.items():
            if key not in known:
                raise UnknownNameError(f"no key protocol.{key}; {nearest(key, known)}")
            if key in ("stage1", "stage2", "extend"):
                values[key] = check_grid(f"protocol.{key}", value)
            elif key == "metrics":
                values[key] = list(value or ())
            elif key == "learning_curve":
                for share in value or ():
                    refuse(f"protocol.{key}", share, known[key].metadata)
            elif not (value is None and str(known[key].type).endswith("None")):
                refuse(f"protocol.{key}", value, known[key].metadata)
        protocol = cls(**values)
        protocol.check_metrics()
        return protocol

    @property
    def splits_file(self) -> str | None:
        """The file of a table of splits, where ``splits`` names one and no rule."""
        return self.splits if self.splits.endswith(".csv") else None

    @property
    def scores(self) -> list[str]:
        """The metric that selects, and the further metrics that are recorded."""
        return list(dict.fromkeys([*([self.metric] if self.metric else []), *self.metrics]))

    def check_metrics(self) -> None:
        """Refuse an unknown metric; a separate function, because importing the metrics imports NumPy and SciPy."""
        from .. import metrics

        for name in self.scores:
            metrics.check_metric(name)


def check_tolerances(solver: Mapping[str, Any]) -> None:
    """Refuse a group ``solver`` whose fits would not end."""
    for name, about in TOLERANCES.items():
        if name in solver and (name == "tol" or solver[name] is not None):
            refuse(f"solver.{name}", solver[name], about)


def check_grid(name: str, values: Any) -> dict[str, list[float]]:
    """Return one stage of a search, candidate values or multipliers of every axis, as lists of numbers above 0; null leaves a list out."""
    if values is None:  # the way to empty a group on the command line
        return {}
    if not isinstance(values, Mapping):
        raise ConfigError(f"{name}={values} is not a group of lists; give {name}.{axes()[0]}=[...], or null")
    grid = {}
    for axis, candidates in values.items():
        if candidates is None:
            continue
        if axis not in axes():
            raise UnknownNameError(f"unknown key '{name}.{axis}'; {nearest(f'{name}.{axis}', [f'{name}.{each}' for each in axes()])}")
        if not isinstance(candidates, Sequence) or isinstance(candidates, str):
            remedy = f"give {name}.{axis}=[{candidates}], or fix a value with hyper.NAME=VALUE"
            raise ConfigError(f"{name}.{axis}={candidates} is no list; {remedy}")
        numbers = list(candidates)
        if not numbers:
            raise ConfigError(f"{name}.{axis}=[] is empty; give at least one value")
        with contextlib.suppress(ValueError):
            numbers = [float(number) if isinstance(number, str) else number for number in numbers]
        if not all(POSITIVE["valid"](number) for number in numbers):
            raise ConfigError(f"{name}.{axis}={candidates} is not valid; every element must be {POSITIVE['wanted']}")
        grid[str(axis)] = [float(number) for number in numbers]
    return grid
