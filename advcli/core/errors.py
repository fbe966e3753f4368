"""Errors for people: one line that says what is wrong, where, and what to do.

Every error that a user can cause derives from `AdvcliError`; the command line prints its text and its `code`, and leaves with `exit_code`.
A code never changes its meaning, so scripts can compare it.

    AdvcliError
        ConfigError
            UnknownNameError
            InvalidValueError
            IncompatibleError
        DataError
            MissingDataError
            ProblemsError
        ResultsError
        ModelError
        OutputError
        KilledError
    NotConvergedWarning
    StrategyWarning
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable

EXIT_CODES = {
    0: "The command did its work. A sweep with fits that did not converge ends with 0: their rows and a warning name them.",
    1: (
        "A cell failed, or did not start in time (`limits.total_seconds`); a number moved (`advcli check`); a gap was refuted or none was "
        "proved (`advcli verify`); or standard output took nothing (a full disk)."
    ),
    2: "Bad input: a word, a key, a file or a combination that cannot be used. One line names it and a remedy, before any work.",
    129: "The terminal was closed (SIGHUP). Finished cells are kept.",
    130: "Ctrl-C (SIGINT). Finished cells are kept, and the last line is the command that continues.",
    141: "The reader of standard output, such as head, closed the pipe (SIGPIPE). Results are kept.",
    143: "A scheduler or `kill` ended the command (SIGTERM). Finished cells are kept.",
}
"""Exit codes of the command line with their meanings."""

MOST = 1000  # characters of a line that people read; what is longer, such as a label of somebody's, is cut in its middle


def readable(text: str) -> str:
    """Return a text as one line of at most `MOST` characters: the beginning says what is wrong, the end what to do."""
    line = " ".join(text.split())
    if len(line) <= MOST:
        return line
    left_out = len(line) - MOST
    return f"{line[: MOST // 2]} [{left_out} characters left out] {line[-(MOST // 2) :]}"


class AdvcliError(Exception):
    """Base of all errors that the command line answers with one line instead of a traceback."""

    code = "ADV000"
    """What kind of error it is, for programs: a code keeps its meaning while texts change."""
    exit_code = 2

    @property
    def lines(self) -> list[str]:
        """The text as whole lines for a terminal: one, but for errors that are several."""
        return [readable(str(self))]


class ConfigError(AdvcliError, ValueError):
    """A key, value or combination in the configuration that cannot be used."""

    code = "ADV001"


class UnknownNameError(ConfigError):
    """A name that nothing has: a key, an action, a choice of a group, a class, a column, a test. The text has the nearest names."""

    code = "ADV002"


class InvalidValueError(ConfigError):
    """A value that breaks the rule of its key or parameter: its type, its range, or a choice that does not exist."""

    code = "ADV003"


class DataError(AdvcliError, ValueError):
    """A data set that is damaged or not what its description says."""

    code = "ADV010"


class MissingDataError(DataError):
    """A file of data that is not here."""

    code = "ADV011"


class ProblemsError(DataError):
    """Several things that are wrong with one data set, raised at once: where, and a line for each with its remedy."""

    code = "ADV012"

    def __init__(self, where: str, problems: tuple[str, ...]) -> None:
        super().__init__(where, problems)
        self.where, self.problems = where, problems

    def __str__(self) -> str:
        return f"{self.where}: {'; '.join(f'({number}) {problem}' for number, problem in enumerate(self.problems, start=1))}"

    @property
    def lines(self) -> list[str]:
        """A line that counts the problems and one for each."""
        head = f"{self.where} has {len(self.problems)} problems:"
        return [head, *(f"  {readable(problem)}" for problem in self.problems)]


def refuse_all(problems: Iterable[str], where: str = "the table") -> None:
    """Raise what is wrong with a data set, all of it at once; where a line begins with ``where``, this appears once."""
    lines = tuple(dict.fromkeys(problems))
    if lines:
        raise DataError(lines[0]) if len(lines) == 1 else ProblemsError(where, tuple(line.removeprefix(f"{where}: ") for line in lines))


class ResultsError(AdvcliError):
    """A results folder that cannot be written, read or belongs to another experiment."""

    code = "ADV020"


class ModelError(AdvcliError):
    """A saved model that cannot be read."""

    code = "ADV030"


class IncompatibleError(ConfigError):
    """A combination of parts that has no meaning: ``what`` (solver=dual) ``needs`` something; ``missing`` lacks it, choose another."""

    code = "ADV004"

    def __init__(self, what: str, needs: str, missing: str) -> None:
        super().__init__(f"{what} needs {needs}; {missing}")
        self.what, self.needs, self.missing = what, needs, missing

    def __reduce__(self) -> tuple[type[IncompatibleError], tuple[str, str, str]]:
        """Pickle by the three parts: the text alone would not make the error again in another process."""
        return type(self), (self.what, self.needs, self.missing)


class OutputError(AdvcliError):
    """Words that standard output does not take."""

    code = "ADV040"
    exit_code = 1


class KilledError(AdvcliError):
    """A cell whose process was ended before its result: over a limit of time or memory, or by a crash of compiled code."""

    code = "ADV041"
    exit_code = 1


class NotConvergedWarning(UserWarning):
    """A fit that stopped before its certified relative gap reached the tolerance."""


class StrategyWarning(UserWarning):
    """A metric of probability estimates is applied to the strategy of a game, which estimates none."""


def error_classes() -> list[type[AdvcliError]]:
    """Return the classes of errors in the order of their codes."""
    kinds = [kind for kind in globals().values() if isinstance(kind, type) and issubclass(kind, AdvcliError)]
    return sorted(kinds, key=lambda kind: kind.code)


def warn_not_converged(text: str) -> None:
    """Warn of a fit that did not arrive, at the line outside this package that asked for it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "advcli":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, NotConvergedWarning, stacklevel=level)


def nearest(name: str, choices: Iterable[str]) -> str:
    """Return a clause that names the nearest valid names, three at most, for the end of an error message."""
    choices = sorted(set(map(str, choices)))
    close = difflib.get_close_matches(str(name), choices, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else f"choose one of {', '.join(choices)}"
