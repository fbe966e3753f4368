"""The action ``loss``: is a surrogate Fisher consistent?"""

from __future__ import annotations

from pathlib import Path

from ...config import Settings
from ...config.meanings import named_keys
from ...core.errors import ConfigError, UnknownNameError, nearest
from ..task import Task

KEYS = ("classes", "matrix")


class LossCheck(Task):
    """Decide whether the surrogate of a cost matrix, or another piecewise linear surrogate, is Fisher consistent."""

    section = "Check, keep and share"
    place = 45
    summary = "decide whether a surrogate is Fisher consistent, by proof"
    usage = (
        ("loss check MATRIX.csv", "the adversarial surrogate of a cost matrix: a proof, or a distribution that breaks it"),
        ("loss check NAME classes=3", "a loss by its name, such as ww; matrix=FILE.csv if it is not meant for errors"),
    )
    example = "advcli loss check cs classes=3"
    choices = ("check",)

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        self.given: dict[str, str] = {}
        words, self.overrides = self.overrides, []
        for word in words:
            key, equals, value = word.partition("=")
            key, value = (key, value) if equals else ("of", key)
            if named_keys([key]):
                self.overrides.append(word)
            elif key in self.given or key not in ("of", *KEYS):
                raise UnknownNameError(f"advcli loss check takes a file or the name of a loss, classes= and matrix=; {nearest(word, KEYS)}")
            else:
                self.given[key] = value
        if "of" not in self.given:
            raise ConfigError("advcli loss check needs a cost matrix or a loss, as in advcli loss check cs classes=3")

    def act(self, settings: Settings) -> None:
        """Print the verdict, and the distribution where there is one."""
        from ...losses import loss_names, make_loss
        from ...losses.consistency import CASES, decide, decide_matrix
        from ...losses.matrices import read_csv

        of = self.given["of"]
        if of in loss_names() and not Path(of).is_file():
            classes = self.given.get("classes", "3")
            if not classes.isdecimal() or int(classes) < 2:
                raise ConfigError(f"classes={classes} is not a whole number of at least 2")
            matrix = read_csv(self.given["matrix"]).align(None).values if "matrix" in self.given else None
            verdict, about = decide(make_loss(of, int(classes)), matrix), f"loss={of}, {classes} classes"
        else:
            if given := [key for key in KEYS if key in self.given]:
                raise ConfigError(f"{given[0]}= is for a loss by its name; {of} is the file of a cost matrix")
            costs = read_csv(of).align(None)
            if not costs.of_classes:
                remedy = "loss.rule=predictor, argmax of the predictor's distribution, is consistent for every matrix"
                raise ConfigError(f"the rows of {of} are not its classes, so the largest score names no prediction; {remedy}")
            matrix = costs.values
            verdict, about = decide_matrix(matrix), f"{of}, {matrix.shape[1]} classes, {matrix.shape[0]} predictions"
        self.code = 0 if verdict.consistent else 1
        print(f"{about}: {'' if verdict.consistent else 'not '}Fisher consistent under the rule of the largest score")
        for case, broken, before in zip(CASES, verdict.violations, (None, *verdict.violations), strict=False):
            if broken is None or broken is before:
                print(f"- {case}: {'no distribution breaks it' if broken is None else 'broken by the same distribution'}")
                continue
            print(f"- {case}: broken by the distribution {_numbers(broken.distribution)}")
            print(f"  scores {_numbers(broken.scores)} have the least surrogate risk (to {abs(broken.excess):.0e}) and can predict")
            print(f"  {broken.prediction} at the expected cost {broken.costs[0]:.4g}; {broken.best} costs {broken.costs[1]:.4g}")
        print(f"{verdict.programs} linear programs solved; predictions and classes are counted from 0")
        if verdict.violations[-1] is not None and of not in loss_names():
            print("the rule argmax of the predictor's distribution, loss.rule=predictor, is consistent for every matrix")


def _numbers(values: object) -> str:
    """Return numbers for people."""
    return "(" + ", ".join(f"{value + 0.0:.4g}" for value in values) + ")"  # type: ignore[attr-defined]
