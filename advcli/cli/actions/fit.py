"""The action ``fit``: one method on a whole data set, saved as a model."""

from __future__ import annotations

import time
import warnings

from ...config import Settings
from ...core.errors import NotConvergedWarning
from ...core.notes import noted
from ..console import hyper_words, say, short
from ..folders import beside, refuse_unwritable
from ..task import METHOD, Task


class Fit(Task):
    """Fit one method to a whole data set and save it."""

    section = "Models"
    place = 31
    summary = "search on all rows, fit, and save the model"
    usage = (("fit dataset=csv dataset.path=FILE.csv dataset.target=COLUMN out=MODEL", "search, fit on all rows, save"),)
    example = "advcli fit dataset=iris loss=zero_one out=iris.model"
    groups = (*METHOD, "protocol")
    keys = ("out", "hyper", "calibrate", "seed", "arithmetic", "data_dir")

    def act(self, settings: Settings) -> None:
        """Search, fit, save; print what was chosen and the certificate."""
        out = self.needed(settings.out, "out=FILE, the model file to write")
        refuse_unwritable(out, settings.dataset.get("path"))
        from ... import models
        from ...evaluation import Cell
        from ...learners import Method

        models.check_storable(Method.of(settings).sample.kept_by_pickle, out, f"loss={settings.loss['name']}")
        began = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            model = models.fit(Cell.of(settings), settings.data_dir)
        models.save(model, out)
        about, certificate = model.about, model.certificate
        remarks = [f"note: {about['dataset']}: {note}" for note in about["notes"]]
        remarks += [noted("ADV151", f"warning: {edge}") for edge in about["edges"]]
        remarks += [f"warning: {warning.message}" for warning in caught if not issubclass(warning.category, NotConvergedWarning)]
        if certificate is not None and not certificate.converged:
            remarks.append(noted("ADV150", f"warning: not converged ({certificate.status}); {certificate.advice}"))
        for remark in dict.fromkeys(remarks):
            say(" ".join(remark.split()))
        tell = beside(out)
        chosen = hyper_words(about["hyper"], settings.hyper)
        if about["searched"] is not None:
            chosen.append(f"cross-validated {about['metric']} {about['searched']:.4g}")
        tell(f"{settings.label}: {about['rows']} rows, {model.estimator.n_features_in_} features, {len(model.classes)} classes")
        if chosen:
            tell(f"hyper-parameters: {', '.join(chosen)}")
        if certificate is not None:
            bounds = f"objective {certificate.primal:.6g}, dual {certificate.dual:.6g}, relative gap {certificate.relative_gap:.1e}"
            tell(f"certificate: {bounds} (tol {settings.solver['tol']:.0e}), {certificate.passes:.0f} passes")
        if about["guarantee"] is not None:
            tell(f"guarantee: {about['guarantee']}")
        tell(f"{short(out)}: the model, {time.perf_counter() - began:.1f} s")
