"""Regression check of benchmark numbers: rows against a baseline, whose lines people read and whose tolerances they edit.

- The same splits: the values are compared split by split. Every fit is determined by its configuration, so a value that differs by more
  than rounding has moved, whatever a test over the splits says; the paired test's p-value is reported too.
- A tolerance of the metric, or a floor: the means are compared, whatever the splits.
- More or fewer splits of the same kind: the first ones, which both have, are compared as above.
- Other splits (another seed or protocol, other data): two one-sided tests; an entry counts as unchanged when they show that the
  means differ by less than the tolerance.
- What differs of versions, processor and configuration is reported first. What was made by other versions than the installed ones is stale.
- Passes or seconds of more than `COST_FACTOR` times the baseline's are warnings: they depend on the machine.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ...core.checks import FRACTION, refuse_parameter
from ...core.errors import UnknownNameError, nearest
from ...metrics import meaning
from ...results.folder import ResultsFolder
from ...statistics.marks import Significance
from ...statistics.tests import TESTS, equivalence, paired_test
from ..formats.document import counted
from .baseline import ALPHA, CheckedEntry, Made, folder_facts, read_baseline, read_entries, split_fingerprints, stored_entry, value_text
from .gates import NOISE, Gate

TEST = "corrected_ttest"
"""Default paired test, a name in `advcli.statistics.tests.TESTS`."""

COST_FACTOR = 3.0
"""Passes or seconds of more than this multiple of the baseline's are a warning."""

SECONDS_FLOOR = 0.02
"""Medians of seconds up to this one are no warning: they measure what else the machine does."""

STATUSES = ("unchanged", "moved", "missing", "new", "stale", "better")


@dataclass(frozen=True)
class Change:
    """What became of one entry: its means, sample standard deviations and how they were compared; a missing number is nan.

    ``status`` is one of `STATUSES`: ``missing`` is in the baseline, but not in the rows or without a result there, ``stale`` is unchanged,
    but was made by other versions than the installed ones, ``better`` is above a floor. ``test`` is ``identical``, ``rounding`` or
    ``paired`` (moved) on the same splits; ``gate`` where a tolerance of the metric or a floor decides; on other splits ``equivalence``, or
    ``margin`` where only means can be compared (a single split); empty for missing and new entries. ``p_value`` comes from the paired test
    (how unlikely such differences are if chance alone made them) or of the equivalence test (small: unchanged).
    """

    dataset: str
    method: str
    metric: str
    status: str
    old: float
    new: float
    old_std: float = math.nan
    new_std: float = math.nan
    p_value: float = math.nan
    margin: float = math.nan
    test: str = ""
    reason: str = ""
    costs: tuple[str, ...] = ()
    seconds: float = 0.0
    differs: tuple[str, ...] = ()
    stale: str = ""

    @property
    def failed(self) -> bool:
        """Whether the entry fails the check: moved, missing or stale."""
        return self.status in ("moved", "missing", "stale")

    @property
    def better(self) -> bool | None:
        """Whether the new mean is the better one; None if they are equal or one is not there."""
        difference = self.new - self.old
        return None if not difference or math.isnan(difference) else (difference > 0) == meaning(self.metric).higher_is_better

    @property
    def shown(self) -> tuple[str, str]:
        """The old and the new mean with their deviations in words, a dash for none."""
        means = (self.old, self.old_std), (self.new, self.new_std)
        old, new = ("-" if math.isnan(mean) else _shown(self.metric, mean, std) for mean, std in means)
        return old, new

    def line(self) -> str:
        """Return the change as one line: entry, by how much, from what to what, the reason, p, the margin where it decides."""
        text = f"{self.status}: {self.dataset}, {self.method}, {self.metric}"
        was, now = self.shown
        if self.status == "missing":
            return f"{text}: was {was}, now there is nothing: {self.reason}"
        if self.status == "new":
            return f"{text}: {now}, not in the baseline"
        if self.status == "stale":
            return f"{text}: {now}, made by {self.stale}"
        if self.test in _SAME:
            return f"{text}: {now}, {_SAME[self.test]}" + (f" of {self.reason}" if self.reason else "")
        side = {True: " (better)", False: " (worse)", None: ""}[self.better]
        parts = [f"{text}: {self._moved()}, from {was} to {now}{side}"]
        parts += [self.reason] if self.reason else []
        parts += [f"p = {self.p_value:.2g} by the {self.test} test"] if not math.isnan(self.p_value) else []
        parts += [f"margin {_amount(self.metric, self.margin)}"] if self.test in ("equivalence", "margin") else []
        return "; ".join(parts)

    def _moved(self) -> str:
        difference = self.new - self.old
        if abs(difference) <= NOISE * max(abs(self.old), abs(self.new)):
            return "mean unchanged"
        return f"{'rose' if difference > 0 else 'fell'} by {_amount(self.metric, abs(difference))}"


_SAME = {"identical": "the same on every split", "rounding": "the same on every split but for rounding"}


def _amount(metric: str, difference: float) -> str:
    """Return a difference of a metric in words."""
    if not meaning(metric).percent:
        return f"{difference:.3g}"
    text = f"{100.0 * difference:.2f}" if 100.0 * difference >= 0.01 else f"{100.0 * difference:.2g}"
    return f"{text} percentage points"


def _shown(metric: str, mean: float, std: float) -> str:
    """Return mean and deviation of the metric itself: the error as an error, for the line names it."""
    percent = meaning(metric).percent
    factor, digits = (100.0, 2) if percent else (1.0, 4)
    spread = "-" if math.isnan(std) else f"{factor * std:.{digits}f}"
    return f"{factor * mean:.{digits}f} ({spread}){' %' if percent else ''}"


def compare(
    runs: pd.DataFrame,
    baseline: pd.DataFrame,
    *,
    splits: Mapping[str, str] | None = None,
    shorter: Callable[[str, int], str | None] | None = None,
    test: str = TEST,
    alpha: float = ALPHA,
    made: Made | None = None,
    gate: Gate | None = None,
) -> list[Change]:
    """Return what became of every entry of the baseline or the rows, by data set, method and metric; new entries without a result are left
    out.

    ``splits`` are from `split_fingerprints`; without them the fingerprint tells seed, sizes and number of the splits only, and baselines
    made with them are compared as if the splits were others. ``shorter`` gives the fingerprint of a cell key with another number of
    splits, without which such entries are compared as if the splits were others. ``test``, a name in `advcli.statistics.tests.TESTS`,
    gives the p-value beside an entry that moved; ``alpha`` is the level of the equivalence test; ``made`` is from `made_texts`; what
    ``gate`` concerns is compared by its means.
    """
    if test not in TESTS:
        raise UnknownNameError(f"no test {test!r}; {nearest(test, TESTS)}")
    refuse_parameter("the level of the check", alpha, FRACTION)
    old_entries = {entry.name: entry for entry in map(stored_entry, baseline.to_dict("records"))}
    new_entries = {entry.name: entry for entry in read_entries(runs, splits, made)}
    gate = gate or Gate()
    gate.refuse_unknown({metric for *_, metric in (*old_entries, *new_entries)})
    changes = []
    for name in sorted({*old_entries, *new_entries}):
        old, new = old_entries.get(name), new_entries.get(name)
        if old is None:
            if new is not None and new.n:
                changes.append(Change(*name, "new", math.nan, new.mean, new_std=new.std, seconds=new.seconds))
        elif new is None or not new.n:
            reason = "not in the results" if new is None else f"failed: {new.error}" if new.error else "failed"
            changes.append(Change(*name, "missing", old.mean, math.nan, old_std=old.std, margin=old.tolerance, reason=reason))
        else:
            change = _judge(old, new, shorter, test, alpha, gate)
            # an entry that other versions made is never called unchanged
            status = "stale" if change.status == "unchanged" and new.stale else change.status
            differs = tuple(differences((old.made_by, old.config), (new.made_by, new.config)))
            changes.append(replace(change, status=status, differs=differs, stale=new.stale))
    return changes


def _costs(old: CheckedEntry, new: CheckedEntry) -> tuple[str, ...]:
    """Return what became much more expensive, one clause each; what one side does not know is not compared."""
    clauses = []
    if new.passes > COST_FACTOR * old.passes:
        clauses.append(f"{new.passes:.4g} passes per fit, {old.passes:.4g} in the baseline")
    for what, before, now in (("fit", old.fit_seconds, new.fit_seconds), ("predict", old.predict_seconds, new.predict_seconds)):
        if now > COST_FACTOR * before and now > SECONDS_FLOOR:
            clauses.append(f"{now:.3g} s to {what}, {before:.3g} s in the baseline (medians over the splits)")
    return tuple(clauses)


def _judge(
    old: CheckedEntry, new: CheckedEntry, shorter: Callable[[str, int], str | None] | None, test: str, alpha: float, gate: Gate
) -> Change:
    costs = _costs(old, new)

    def change(status: str, p_value: float, how: str, reason: str = "") -> Change:
        return Change(*old.name, status, old.mean, new.mean, old.std, new.std, p_value, old.tolerance, how, reason, costs, new.seconds)

    if new.failed:
        return change("moved", math.nan, "paired", f"{new.failed} of {new.failed + new.n} splits failed: {new.error}")
    if gate.concerns(old.metric):
        same = old.splits == new.splits and len(old.values) > 0
        allowed = gate.allowed(old.metric, old.mean) if gate.has(old.metric) or same else old.tolerance
        status = gate.status(old.metric, old.mean, new.mean, allowed)
        return change(status, math.nan, "gate", f"tolerance {_amount(old.metric, allowed)}" if status == "moved" else "")
    if old.splits == new.splits and len(old.values):
        return change(*_split_by_split(old, new, test))
    if _grown(old, new, shorter):
        common = min(new.n, old.n)
        where = f"the first {common} splits ({new.n} in the results, {old.n} in the baseline)"
        status, p_value, how, reason = _split_by_split(old.first(common), new.first(common), test)
        return change(status, p_value, how, f"{reason}, {where}" if reason else where)
    # rounding must not turn a difference of exactly the margin into a larger one
    beyond = abs(new.mean - old.mean) > old.tolerance + NOISE * max(abs(old.mean), abs(new.mean))
    p_value = equivalence(new.mean, new.std, new.n, old.mean, old.std, old.n, old.tolerance).p_value
    if math.isnan(p_value):
        return change("moved" if beyond else "unchanged", p_value, "margin", "beyond the margin" if beyond else "")
    if p_value < alpha:
        return change("unchanged", p_value, "equivalence")
    return change("moved", p_value, "equivalence", "beyond the margin" if beyond else "equivalence within the margin is not shown")


def _grown(old: CheckedEntry, new: CheckedEntry, shorter: Callable[[str, int], str | None] | None) -> bool:
    """Return whether the entries differ in the number of splits alone, with a value for each of them."""
    if shorter is None or not len(old.values):
        return False
    return shorter(new.cell, old.n) == old.splits and shorter(new.cell, new.n) == new.splits


def _split_by_split(old: CheckedEntry, new: CheckedEntry, test: str) -> tuple[str, float, str, str]:
    """Return status, p-value, test and reason of an entry on the splits of its baseline."""
    if new.n != len(old.values):
        return "moved", math.nan, "paired", f"{new.n} splits, {len(old.values)} in the baseline"
    if np.array_equal(new.values, old.values):
        return "unchanged", 1.0, "identical", ""
    moved = ~np.isclose(new.values, old.values, rtol=NOISE, atol=1e-15)
    if not moved.any():
        return "unchanged", 1.0, "rounding", ""
    first, second = new.values, old.values
    if meaning(old.metric).is_count:
        # each split by its own size; whole numbers, as rates break ties by rounding
        first, second = (np.round(values * np.array(new.sizes), 6) for values in (first, second))
    how = Significance(test).fitting({}, new.n_train, new.n_test).test
    p_value = paired_test(how, first, second, new.n_train, new.n_test).p_value
    most = int(np.argmax(np.abs(first - second)))
    was, became = (value_text(float(values[most]), new.sizes[most]) for values in (old.values, new.values))
    return "moved", p_value, "paired", f"{moved.sum()} of {new.n} splits differ, split {most + 1} the most: from {was} to {became}"


def check_folder(
    folder: ResultsFolder, baseline: Path, *, test: str = TEST, alpha: float = ALPHA, gate: Gate | None = None
) -> list[Change]:
    """Compare the cells of a results folder with a baseline file (see `compare`); the folder is read only.

    The rows come from the cell files; `ResultsFolder.disagreement` tells whether runs.csv shows the same.
    """
    stored = read_baseline(baseline)
    runs, facts = folder_facts(folder)

    def shorter(cell: str, n_splits: int) -> str | None:
        return split_fingerprints(folder, [cell], n_splits).get(cell)

    return compare(runs, stored, **facts, shorter=shorter, test=test, alpha=alpha, gate=gate)


def differences(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return in words what differs between two entries' `MADE_COLUMNS`: ``numpy 2.3 -> 2.4``; an empty column is not compared."""
    clauses = []
    for before, now in zip(reversed(old), reversed(new), strict=True):  # the configuration first
        if before and now:
            was, became = (dict(part.partition("=")[::2] for part in text.split("; ")) for text in (before, now))
            names = [name for name in dict.fromkeys([*was, *became]) if was.get(name) != became.get(name)]
            clauses += [f"{name} {was.get(name, 'null')} -> {became.get(name, 'null')}" for name in names]
    return clauses


def cost_warnings(changes: Sequence[Change]) -> list[str]:
    """Return one line for everything that became more than `COST_FACTOR` times as expensive; metrics of one fit say it once."""
    return list(dict.fromkeys(f"{change.dataset}, {change.method}: {cost}" for change in changes for cost in change.costs))


def changes_text(changes: Sequence[Change]) -> str:
    """Return the lines of a check. They say what differs from the baseline's versions and configuration, name each entry that is neither
    unchanged nor stale, count all entries, and count the entries on other splits.
    """
    both = [change for change in changes if change.status not in ("missing", "new")]
    lines = []
    if clauses := Counter(clause for change in both for clause in change.differs):
        words = [clause + ("" if count == len(both) else f" ({count} of {len(both)} entries)") for clause, count in clauses.items()]
        lines.append(f"differs from the baseline: {'; '.join(words)}")
    for versions, count in Counter(change.stale for change in both if change.stale).items():
        number = counted(count, "entry was", "entries were")
        lines.append(f"{number} made by {versions}: nothing is known of the installed versions; run the experiment again in a new folder")
    lines += [change.line() for change in changes if change.status not in ("unchanged", "stale")]
    numbers = {status: sum(change.status == status for change in changes) for status in STATUSES}
    counts = [f"{number} {status}" for status, number in numbers.items() if number or status not in ("stale", "better")]
    lines.append(f"{counted(len(changes), 'entry', 'entries')}: {', '.join(counts)}")
    others = sum(change.test in ("equivalence", "margin") for change in changes)
    if others:
        lines.append(f"{counted(others, 'entry', 'entries')} without the baseline's splits: means compared within the margin")
    return "\n".join(lines) + "\n"
