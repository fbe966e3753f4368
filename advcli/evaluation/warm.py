"""Imports all that a cell imports on its way; for the fork server, so that no cell pays for it out of its time limit."""

import pandas as pd
import sklearn.datasets
import threadpoolctl

from .. import learners
from ..data.registry import sources
from . import runner

sources()

__all__ = ["learners", "pd", "runner", "sklearn", "threadpoolctl"]
