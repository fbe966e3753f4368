"""The shared support vector machine: the weights of the nodes are learned."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...core.errors import ConfigError
from ...core.label_graph import LabelGraph
from ...core.typing import Array
from ...data.labels.node_weights import best_weights, dual_bound, node_weights
from ..base import register
from ..options import one_of, seed_of
from .attributes import Attributes
from .leaf_problem import LeafProblem, node_squares
from .learner import HierarchicalLearner

MARGINS = ("zero_one", "normalised")
_FARTHER = 2.0  # power of an update of alpha by which the next squared lengths are expected to change
_BLEND = 1e-2  # share of positive weights in new weights, over the tolerance: a weight of 0 would stay 0


@register("ssvm")
@dataclass(kw_only=True, eq=False, repr=False)
class SharedSVM(HierarchicalLearner):
    """The shared support vector machine, choi2018 (6.17): the weights alpha of the nodes are learned, too; trees only.

    Dual ascent at fixed alpha and the closed-form alpha of the node weights found alternate until the bound of the joint problem,
    D = mean of beta.margin - v / (2 Lambda) with v from `advcli.data.labels.node_weights.dual_bound`, certifies the fit.

    Parameters
    ----------
    hierarchy
        As in `HierarchicalSVM`.
    margin : {"zero_one", "normalised"}
        1, or the margins of `NormalisedHierarchicalSVM` at ``rho``.
    rho : float
        Of the weights that the alternation starts from, and of these margins; at least 1.
    updates : int or None
        Limit of updates of alpha; None: as many as the tolerance needs.
    C, lam, tol, max_passes, precision, class_weight, warm_start, verbose, features, features_options, n_classes, random_state
        As in `FlatSVM`.

    Attributes
    ----------
    coef_, certificate_, dual_
        As in `FlatSVM`.
    alpha_ : ndarray (M,)
        Learned weights of the nodes.
    n_updates_ : int
        Updates of alpha made.
    """

    margin: str = "zero_one"
    rho: float = 2.0
    updates: int | None = None

    def attributes(self, graph: LabelGraph, positions: NDArray[np.intp]) -> Attributes:
        """Return the weights to start from, and the margins."""
        if self.updates is not None and (isinstance(self.updates, bool) or not isinstance(self.updates, int) or self.updates < 0):
            raise ConfigError(f"updates={self.updates} must be a whole number of at least 0, or null")
        fixed = one_of("margin", self.margin, MARGINS) == "zero_one"
        best_weights(graph, np.ones(graph.size))  # refuses what is no tree
        mu = node_weights(graph, self.rho)
        before = getattr(getattr(self, "_start", None), "alpha_", mu)
        return Attributes(graph, positions, self._away_from_zero(before if before.shape == mu.shape else mu, mu), mu, 0.0 if fixed else 0.5)

    def _away_from_zero(self, alpha: Array, mu: Array) -> Array:
        """Return alpha mixed with a little of the positive weights mu: a weight of 0 would stay 0."""
        blend = _BLEND * self.tol
        return (1.0 - blend) * alpha + blend * mu

    def _shared(self, graph: LabelGraph) -> dict[str, Any]:
        return {"graph": graph, "updates": self.updates}

    def _learn_leaves(self, problem: LeafProblem, attributes: Attributes, beta: sparse.csr_array, began: float) -> None:
        graph = attributes.graph
        passes, spent, done, inner = 0.0, 0.0, 0, 0.1
        while True:
            beta, spent, _ = problem.ascend(attributes, beta, inner, self.max_passes - passes, seed_of(self.random_state) + done)
            passes += spent
            found = problem.evaluate(attributes, beta, self.tol)
            beta = found.beta
            squares = node_squares(attributes.membership, found.Z)
            lengths = (found.stretch * problem.C * attributes.alpha) ** 2 * squares
            fresh, value = best_weights(graph, lengths)
            primal = (value / (2.0 * problem.C) + found.hinge) / problem.mass
            dual = (found.linear - 0.5 * problem.C * dual_bound(graph, squares)) / problem.mass
            gap = (primal - dual) / primal if primal > 0 else 0.0
            ended = passes + 3.0 > self.max_passes  # an ascent values its start, visits all rows and values the end
            if gap <= self.tol or ended or done == self.updates:
                break
            # an inner gap below that of the joint problem suffices
            inner = max(0.3 * self.tol, 0.1 * gap)
            # twice the step, in logarithms, because updates are small and mostly in one direction
            ratio = np.divide(fresh, attributes.alpha, out=np.ones_like(fresh), where=attributes.alpha > 0)
            farther = best_weights(graph, lengths * ratio**_FARTHER)[0] if done + 1 != self.updates else fresh
            attributes = replace(attributes, alpha=self._away_from_zero(farther, attributes.mu))
            done += 1
        self.alpha_, self.n_updates_ = fresh, done
        self.remarks_ = (f"alpha was updated {done} times" if gap <= self.tol else f"stopped after {done} updates of alpha",)
        self._finish(found.beta, found.coef, primal, dual, found.outside, passes, ended, time.perf_counter() - began)
