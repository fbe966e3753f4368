"""The action ``model``: the contents of a model file."""

from __future__ import annotations

from ...config import Settings
from ..console import print_lines
from ..task import Task


class ModelFile(Task):
    """Show a saved model."""

    section = "Models"
    place = 34
    summary = "show a saved model: method, certificate, classes, columns"
    usage = (("model show FILE", "what a saved model is: method, certificate, classes, columns, versions"),)
    example = "advcli model show iris.model"
    keys = ("trust",)
    choices = ("show",)
    named = "the file that advcli fit wrote, as in advcli model show iris.model"

    def act(self, settings: Settings) -> None:
        """Print what the model says of itself."""
        from ... import models

        print_lines(models.describe(models.read(self.name, settings.trust)))
