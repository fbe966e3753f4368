"""The action ``check``: have the numbers moved?"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from ...config import Settings
from ...config.words import command
from ...core.errors import AdvcliError, ConfigError
from ...core.paths import expanded
from ..console import say, short, warn
from ..folders import existing_folder
from ..task import Task


class Check(Task):
    """Compare the rows of a results folder with a baseline: exit code 1 if an entry moved or is missing.

    Exit code 1 also if runs.csv is not what the cell files make. The folder is read only.

    The JUnit file is there from the start, as an error: whatever ends the check, no result of an earlier one is taken for this one's.
    """

    section = "Check, keep and share"
    place = 42
    summary = "compare results with a baseline; exit code 1 if a number moved"
    usage = (
        (
            "check results=FOLDER baseline=FILE.csv [--update] [junit=FILE.xml]",
            "did the numbers move? exit code 1 and one line per number that did",
        ),
        (
            "check results=results/NAME baseline=FILE.csv floor=true summary=FILE.md",
            "did a mean become worse by more than that? also of imported numbers",
        ),
    )
    example = "advcli check results=results/ci_check baseline=results/baselines/ci_check.csv"
    keys = ("results", "baseline", "update", "tolerance", "relative_tolerance", "floor", "junit", "summary", "report.test", "report.alpha")

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        # people write flags: --update is update=true
        self.overrides = ["update=true" if word == "--update" else word for word in words]
        self.code = 0
        self.streamed = False
        self.summary_file: Path | None = None
        # as far as it is known before the words are composed, which may fail
        asked = [word.partition("=")[2].strip("'\"") for word in words if word.startswith("junit=")]
        self.junit = expanded(asked[-1]).absolute() if asked and asked[-1] not in ("", "null") else None

    def act(self, settings: Settings) -> None:
        """Print one line per entry that is not as it was; write the JUnit file and the new baseline if they were asked for."""
        from ...reports.regression import baseline as baselines
        from ...reports.regression import check, gates, junit, markdown_page
        from ...results.folder import ResultsFolder

        if settings.summary is not None:
            markdown_page.refuse_other(settings.summary)
        self.junit, self.summary_file = settings.junit, settings.summary
        self._write_junit(junit.junit_error("the check was ended before its result"), final=False)
        file = self.needed(settings.baseline, "baseline=FILE.csv; with --update it writes one")
        folder = ResultsFolder(existing_folder(settings))
        previous = baselines.read_baseline(file) if file.exists() or not settings.update else None
        for key in ("junit", "summary"):
            if previous is None and getattr(settings, key) is not None:
                raise ConfigError(f"{key}=... needs a baseline to compare with, and {short(file)} is not there yet; leave it out")
        finding = folder.disagreement()
        if finding:
            remedy = command("report", results=short(folder.path))
            finding = f"{short(folder.path)}/{finding}; {remedy} makes it again from the cells"
            print(finding)
            self.code = 1
        if previous is not None:
            test, alpha = settings.report["test"] or check.TEST, settings.report["alpha"] or baselines.ALPHA
            gate = gates.Gate(settings.tolerance, settings.relative_tolerance, settings.floor)
            changes = check.check_folder(folder, file, test=test, alpha=alpha, gate=gate)
            self._write_junit(junit.junit_xml(changes, f"advcli check {file.name}", finding=finding))
            print(check.changes_text(changes), end="")
            warn(check.cost_warnings(changes))
            if not settings.update and any(change.failed for change in changes):
                self.code = 1
            if settings.summary is not None:
                text = markdown_page.check_markdown(changes, file.name, finding=finding, failed=self.code == 1)
                markdown_page.write_summary(settings.summary, text)
        warn(folder.remarks)
        if settings.update and finding:
            say(f"{short(file)} stays as it was: whether runs.csv or the cells are right is not known")
        elif settings.update:
            made = baselines.folder_baseline(folder, previous=previous)
            self._update(file, gates.raised(made, previous) if settings.floor else made, short(folder.path))

    def abandoned(self, error: BaseException) -> None:
        """Say the error in the JUnit file too."""
        # a closed pipe behind our output is not an error of the check
        if self.junit is not None and not isinstance(error, BrokenPipeError):
            from ...reports.regression import junit

            with contextlib.suppress(AdvcliError, OSError):  # the reason why this file cannot be written may be the error itself
                self._write_junit(junit.junit_error(" ".join(str(error).split()) or type(error).__name__))
        if self.summary_file is not None and not isinstance(error, BrokenPipeError):
            from ...reports.regression import markdown_page

            with contextlib.suppress(AdvcliError, OSError):
                markdown_page.write_summary(self.summary_file, markdown_page.error_markdown(str(error)))

    def _write_junit(self, text: str, final: bool = True) -> None:
        """Write the JUnit file if there is to be one; no other file is replaced by it, and a stream gets the final one alone."""
        from ...core.files import destination, read_regular, write_text

        if self.junit is None:
            return
        with contextlib.suppress(OSError):  # the writer says what is wrong
            self.junit.parent.mkdir(parents=True, exist_ok=True)
            if destination(self.junit)[1] and (self.streamed or not final):
                return
            head = read_regular(self.junit)[:1000]
            if head.strip() and b"<testsuite" not in head:
                raise ConfigError(f"{short(self.junit)} is there already and no JUnit file; choose another junit=FILE.xml")
        write_text(self.junit, text, "choose another junit=FILE.xml", streams=True)
        self.streamed = final

    def _update(self, path: Path, baseline: Any, results: str) -> None:
        from ...reports.formats.document import counted
        from ...reports.regression import baseline as baselines

        baselines.write_baseline(path, baseline)
        print(f"{short(path)}: {counted(len(baseline), 'entry', 'entries')}, kept for later checks")
        for entry in baseline.attrs["left_out"]:
            dataset, method = entry.rsplit(", ", 1)[0].split(", ", 1)
            drop = command("drop", results=results, dataset=dataset, method=method)
            remedy = f"run the experiment again, or {drop}, then update"
            say(f"{entry}: left out of the baseline, as not every split has a result; {remedy}")
            self.code = 1
