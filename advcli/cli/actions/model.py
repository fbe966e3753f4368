"""The action ``model``: what stands in a model file."""

from __future__ import annotations

from ...config import Settings
from ..task import Task, subject


class ModelFile(Task):
    """Show a saved model."""

    place = 8
    usage = (("model show FILE", "what a saved model is: method, certificate, classes, columns, versions"),)
    choices = ("show",)

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        _, self.file, rest = subject("model", words, self.choices, "the file that advcli fit wrote, as in advcli model show iris.model")
        self.overrides = rest

    def act(self, settings: Settings) -> None:
        """Print what the model says of itself."""
        from tabulate import tabulate

        from ... import models

        lines = models.describe(models.read(self.file, settings.trust))
        print(tabulate([[f"{key}:", value] for key, value in lines.items()], tablefmt="plain", disable_numparse=True))
