"""The action ``certify``: weights of other programs, judged."""

from __future__ import annotations

import warnings

from ...config import Settings
from ..console import say
from ..task import METHOD, Task


class Certify(Task):
    """Judge weights that another program fitted."""

    section = "Check, keep and share"
    place = 44
    summary = "bound the distance of another program's weights to the optimum"
    usage = (("certify model=FILE.npz dataset=NAME loss=NAME", "how far weights of other programs are from the optimum"),)
    example = "advcli certify model=weights.npz dataset=iris loss=cs hyper.C=1"
    groups = METHOD
    keys = ("model", "hyper", "seed", "arithmetic", "data_dir")

    def act(self, settings: Settings) -> None:
        """Print the weights' objective, bounds of the optimum, and how far apart they are."""
        weights = self.needed(settings.model, "model=FILE.npz, with arrays coef (k, d) and, if there is one, intercept (k,)")
        from ...evaluation import Cell
        from ...evaluation.foreign_weights import judge_file

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            judgement, about = judge_file(weights, Cell.of(settings), settings.data_dir)
        for message in dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught):
            say(f"warning: {message}")
        print(f"{settings.label}: {about}")
        print(f"objective of the weights: {judgement.primal:.8g}")
        fit = f"our own fit: {judgement.certificate.solver}, tol {settings.solver['tol']:.0e}"
        print(f"optimum: between {judgement.dual:.8g} and {judgement.best:.8g} ({fit})")
        least = f", at least {judgement.excess:.3g}" if judgement.excess > 0 else ""
        print(f"above the optimum: at most {judgement.gap:.3g}{least}; relative gap {judgement.relative_gap:.1e}")
