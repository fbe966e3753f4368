"""The action ``coverage``: a saved model on labelled rows, accepted and abstained."""

from __future__ import annotations

import shlex

from ...config import Settings
from ..console import short
from ..folders import refuse_file
from ..task import Task


class Coverage(Task):
    """Show the errors of a saved model among the rows that it accepts."""

    section = "Models"
    place = 33
    summary = "risk over coverage of a saved model, thresholds with a guarantee"
    usage = (("coverage model=MODEL input=HELD_OUT.csv out=FOLDER", "risk over coverage, confusion with abstentions, safe thresholds"),)
    example = "advcli coverage model=iris.model input=held_out.csv out=coverage"
    keys = ("model", "input", "out", "coverage", "trust", "spreadsheets")

    def act(self, settings: Settings) -> None:
        """Read, predict, and write the tables and the plot."""
        file = self.needed(settings.model, "model=FILE, the file that advcli fit wrote")
        rows = self.needed(settings.input, "input=FILE, a CSV file of rows with labels that the model has not seen")
        out = self.needed(settings.out, "out=FOLDER, the folder to write into")
        refuse_file(out)
        from ... import models
        from ...models import coverage
        from ...reports.drawing import draw

        model, wanted_of = models.read(file, settings.trust), settings.coverage
        how = {"epsilons": wanted_of["epsilons"], "confidence": wanted_of["confidence"], "spreadsheets": settings.spreadsheets}
        report = coverage.coverage_file(model, rows, out, draw, **how)
        curve = report.curve
        areas = f"AURC {curve.aurc:.4g}, E-AURC {curve.excess:.4g}, AUGRC {curve.augrc:.4g}"
        print(f"{report.rows} rows, risk {curve.risk[-1]:.4g} where all are accepted; {areas}")
        print(report.confusion.to_string())
        for guarantee in report.guarantees:
            print(guarantee)
        safe = next((guarantee for guarantee in report.guarantees if guarantee.accepted), None)
        if safe is not None:
            words = [f"model={short(file)}", "input=NEW.csv", "out=PREDICTIONS.csv", f"predict.tau={safe.tau!r}"]
            print(f"to apply the threshold of the error {safe.epsilon:g}: advcli predict {shlex.join(words)}")
        if not report.guarantees:
            print(f"{report.rows} rows are too few for a threshold with a guarantee")
        print(f"{short(out)}: curve.csv, curve.svg, curve.pdf, curve.png, confusion.csv, guarantees.csv")
