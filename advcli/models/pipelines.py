"""The pipeline that a loaded model is: scikit-learn's, with what its last step says of held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if


def _last_has(name: str) -> Callable[[Pipeline], bool]:
    def check(pipeline: Pipeline) -> bool:
        getattr(pipeline.steps[-1][1], name)  # its own AttributeError
        return True

    return check


class ModelPipeline(Pipeline):
    """A `sklearn.pipeline.Pipeline` whose rows and labels are those of the training file, with the methods of an abstaining last step."""

    def _before(self, X: Any) -> Any:
        return self[:-1].transform(X)

    def margins(self, X: Any) -> Any:
        """Return how sure the predictions of rows X are, shape (n,) (`Learner.margins`)."""
        return self[-1].margins(self._before(X))

    @available_if(_last_has("risk_coverage"))
    def risk_coverage(self, X: Any, y: Any) -> Any:
        """Return risk over coverage on rows X with labels y (n,) (`AbstainingClassifier.risk_coverage`)."""
        return self[-1].risk_coverage(self._before(X), y)

    @available_if(_last_has("calibrate"))
    def calibrate(self, X: Any, y: Any, **options: Any) -> Any:
        """Set the threshold of the last step by held-out rows X with labels y (n,), and return it (`AbstainingClassifier.calibrate`)."""
        return self[-1].calibrate(self._before(X), y, **options)
