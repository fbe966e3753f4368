"""The imports of a cell, made beforehand by the fork server: no cell pays for imports out of its time limit."""

import pandas as pd
import sklearn.datasets
import threadpoolctl

from .. import learners
from ..data.registry import sources
from . import runner

sources()
learners.learner_names()

__all__ = ["learners", "pd", "runner", "sklearn", "threadpoolctl"]
