"""The action ``verify``: gaps proved again from what was kept."""

from __future__ import annotations

from ...config import Settings
from ..console import short
from ..folders import existing_folder
from ..task import Task


class Verify(Task):
    """Prove the gaps of a results folder again from its proofs: exit code 1 if one is refuted, or none is proved."""

    section = "Check, keep and share"
    place = 43
    summary = "prove the duality gaps of results again from stored proofs"
    usage = (("verify results=results/NAME", "prove every gap again from kept proofs (record.proofs=true)"),)
    example = "advcli verify results=results/first"
    keys = ("results", "data_dir", "spreadsheets")

    def act(self, settings: Settings) -> None:
        """Print one line per cell, how many fits were proved, and which metrics were not followed; write verify.csv."""
        from ...results.folder import ResultsFolder
        from ...verify import summary, verify_folder

        folder = existing_folder(settings)
        results = ResultsFolder(folder)
        with results.locked():  # verify.csv says of the rows that are there what they are worth
            verdicts = verify_folder(results, settings.data_dir, print, settings.spreadsheets)
        counts = {word: sum(fit.verdict == word for fit in verdicts) for word in ("proved", "refuted", "cannot")}
        counted, *unproved = summary(verdicts)
        print(f"{short(folder)}: {counted}, {sum(fit.seconds for fit in verdicts):.1f} s; verify.csv", *unproved, sep="\n")
        self.code = int(counts["refuted"] > 0 or not counts["proved"])
