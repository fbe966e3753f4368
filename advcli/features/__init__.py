"""Feature maps: one file each; every module here registers itself on import."""

import importlib
import pkgutil

from .base import STRENGTH, ExplicitMap, FeatureMap, feature_class, feature_names, make_features, register
from .shared import kept_in

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["STRENGTH", "ExplicitMap", "FeatureMap", "feature_class", "feature_names", "kept_in", "make_features", "register"]
