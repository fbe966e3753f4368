"""A feature map turns parameters and rows into scores; it knows no loss.

One file a map; a file registers it, and the registry imports all files at the first name asked for.
"""

from .base import STRENGTH, ExplicitMap, FeatureMap, feature_class, feature_names, make_features, register
from .cache import kept_in

__all__ = ["STRENGTH", "ExplicitMap", "FeatureMap", "feature_class", "feature_names", "kept_in", "make_features", "register"]
