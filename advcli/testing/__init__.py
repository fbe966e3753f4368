"""Checks of anybody's own items: each function raises AssertionError with one sentence of what is broken and for which input."""

from .figures import check_figure
from .learners import check_learner
from .losses import check_loss
from .metrics import check_metric
from .solvers import check_solver
from .sources import check_source

__all__ = ["check_figure", "check_learner", "check_loss", "check_metric", "check_solver", "check_source"]
