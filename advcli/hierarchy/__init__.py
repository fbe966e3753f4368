"""Label hierarchies: the graph of labels, its normalisation weights and inference over it. Knows labels and scores, never X."""

from .graph import LabelGraph

__all__ = ["LabelGraph"]
