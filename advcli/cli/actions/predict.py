"""The action ``predict``: a saved model on new rows."""

from __future__ import annotations

from typing import Any

from ...config import Settings
from ...core.errors import ConfigError
from ...core.paths import expanded
from ..console import say, short
from ..folders import beside, refuse_unwritable
from ..task import Task


class Predict(Task):
    """Apply a saved model to a CSV, parquet, feather or Excel file."""

    section = "Models"
    place = 32
    summary = "apply a saved model to a file of new rows"
    usage = (("predict model=MODEL input=NEW.csv out=PREDICTIONS.csv", "labels, potentials, probabilities, abstentions"),)
    example = "advcli predict model=iris.model input=new.csv out=predictions.csv"
    keys = (
        *("model", "input", "out", "chunk_rows", "trust", "spreadsheets", "quiet"),
        *("predict.unseen", "predict.gaps", "predict.extra", "predict.rejected", "predict.tau"),
    )

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        for word in words:
            key, equals, _ = word.partition("=")
            if equals and not key.startswith("-") and key.lstrip("+") not in self.keys:
                raise ConfigError(f"advcli predict takes {', '.join(self.keys)}; everything else stands in the model, leave out {word}")

    def act(self, settings: Settings) -> None:
        """Read, predict and write, some rows at a time."""
        file = self.needed(settings.model, "model=FILE, the file that advcli fit wrote")
        rows = self.needed(settings.input, "input=FILE, the CSV file of new rows")
        out = self.needed(settings.out, "out=FILE, the file to write")
        refuse_unwritable(out, rows, file)
        rules = settings.predict
        rejected = None if rules["rejected"] is None else expanded(rules["rejected"]).absolute()
        if rejected is not None:
            refuse_unwritable(rejected, rows, file, out)
        from ... import models

        model = models.read(file, settings.trust)
        model = model if rules["tau"] is None else model.at_threshold(rules["tau"])
        ignore = tuple(kind for kind in ("unseen", "gaps", "extra") if rules[kind] == "ignore")
        how: dict[str, Any] = {"ignore": ignore, "rejected": rejected, "spreadsheets": settings.spreadsheets}
        done = models.predict_file(model, rows, out, settings.chunk_rows, **how)
        if rejected is not None and done.rejected:
            count = f"{done.rejected} {'row is' if done.rejected == 1 else 'rows are'}"
            say(f"warning: {count} not predicted; {short(rejected)} has them with the reasons")
        if done.ignored and not settings.quiet:
            say(f"note: not used by the model: {', '.join(done.ignored)}")
        abstained = f", {done.abstained} of them abstaining" if done.abstained else ""
        if not settings.quiet:
            beside(out)(f"{short(out)}: {done.rows} predictions{abstained}")
