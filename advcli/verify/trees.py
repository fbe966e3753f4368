"""Bounds of dependency trees, from the definition of their surrogates (advcli.verify of ``loss=dependency_trees``).

    P(w) = lambda/2 |w|^2 + 1/n sum_s c_s S_s,   f(y) = sum over words m with head h of the weights of the arc's features,   n = sum_s c_s

S_s is the largest psi(h, g) of all projective trees (`structured`): the largest h at each number g of wrong heads comes from Eisner's
algorithm over (span, g), the largest h + g of margin rescaling from Eisner's algorithm. Features are made here anew, by their definition: a
sum of random numbers, one for each part of a key, chooses the slot (docs/howto/learn/trees.md). Stored trees of weights alpha give

    D = 1/n sum_s c_s sum_p alpha_p c_p - |1/n sum_s c_s sum_p alpha_p a_p (phi(y_p) - phi(y_s))|^2 / (2 lambda)  <= min P.

Rounding is monotone: the largest of sums made term by term is the rounded sum of one tree, and has the error of a sum of 4T terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..core.typing import Array
from .bounds import UNIT, Ball, ball, inverse, outward
from .decisions import computed
from .gap import Bounds, LearnedRows, ScoreMap, bound
from .label_sets import Structured, SurrogateOfMargin
from .sequences import batches, sequences_of, starts_of, sums
from .surrogates import CannotError, Surrogate

_HELD = 2**22  # numbers that are held at once
_LONGEST = 160  # words of a sentence whose trees are looked at by number of wrong heads

_BELOW = 1e3  # by how much the score of a tree that does not exist lies below the truth's: psi is 0 there, or negative

Codes = NDArray[np.uint64]


# ---- features ---------------------------------------------------------------------------------------------------------
def _mixed(x: Codes) -> Codes:
    """Return the numbers after x of splitmix64 (Steele, Lea & Flood 2014)."""
    with np.errstate(over="ignore"):  # of single numbers NumPy says that they go round
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def _part(role: int, code: Codes) -> Codes:
    return _mixed(code ^ _mixed(np.array(role, dtype=np.uint64)))


class Arcs:
    """Positions of the features of arcs of b sentences of T words, among 2^bits; words and tags (b, T) are codes."""

    def __init__(self, words: Array, tags: Array, bits: int) -> None:
        b, self.T = words.shape
        self.shift = np.uint64(64 - bits + 4)
        root, begin, end = (np.full((b, 1), -code, dtype=np.int64).astype(np.uint64) for code in (1, 2, 3))
        word = np.concatenate([root, words.astype(np.uint64)], axis=1)
        self.tag = np.concatenate([root, tags.astype(np.uint64)], axis=1)
        both = word + _mixed(self.tag)
        before, after = np.concatenate([begin, self.tag[:, :-1]], axis=1), np.concatenate([self.tag[:, 1:], end], axis=1)
        codes = (word, self.tag, both, word, self.tag, both, after, before, after, before, self.tag)
        self.parts = [_part(role, code) for role, code in enumerate(codes)]

    def _keys(self, s: Any, head: Any, word: Any) -> Iterator[Codes]:
        hw, ht, hb = (self.parts[role][s, head] for role in (0, 1, 2))
        mw, mt, mb = (self.parts[role][s, word] for role in (3, 4, 5))
        after, before = self.parts[6][s, head], self.parts[7][s, head]
        right, left = self.parts[8][s, word], self.parts[9][s, word]
        yield from (hw, ht, hb, mw, mt, mb, hb + mb, ht + mb, hw + mb, hb + mt, hb + mw, hw + mw, ht + mt)
        tags = ht + mt
        yield from (tags + after + left, tags + before + left, tags + after + right, tags + before + right)

    def of_relations(self, s: Any, head: Any, word: Any, bits: int) -> NDArray[np.intp]:
        """Return the positions of what relations are learned from at arcs (a,), among 2^bits, (18, a)."""
        distance = np.abs(head - word)
        far = np.where(distance <= 5, distance, np.where(distance <= 10, 6, 7)).astype(np.uint64)
        keys = [*self._keys(s, head, word), self.parts[1][s, head] + self.parts[4][s, word] + _part(11, far)]
        return np.stack([(key >> np.uint64(64 - bits + 1)).astype(np.intp) * 2 + (head > word) for key in keys])

    def positions(self, s: Any, head: Any, word: Any) -> Iterator[tuple[NDArray[np.intp], Any]]:
        """Yield positions of features of arcs (broadcast), and which arcs have them; True: all."""
        side = np.where(head > word, 8, 0)
        distance = np.abs(head - word)
        far = np.where(distance <= 5, distance, np.where(distance <= 10, 6, 7))
        for key in self._keys(s, head, word):
            slot = (key >> self.shift).astype(np.intp) * 16 + side
            yield slot, True
            yield slot + far, True
        tags = self.parts[1][s, head] + self.parts[4][s, word]
        low, high = np.minimum(head, word), np.maximum(head, word)
        for tag in np.unique(self.tag[:, 1:]):
            count = np.cumsum(self.tag == tag, axis=1)  # up to a place
            between = count[s, np.maximum(high - 1, low)] > count[s, low]
            if between.any():
                part = _part(10, np.array(tag, dtype=np.uint64))
                yield ((tags + part) >> self.shift).astype(np.intp) * 16 + side, between

    def scores(self, theta: Array) -> Ball:
        """Return the scores of all arcs, (b, T + 1, T + 1): row the head, 0 the root, column the word."""
        s, head, word = np.ogrid[: self.tag.shape[0], : self.T + 1, : self.T + 1]
        mid, size = np.zeros((2, len(self.tag), self.T + 1, self.T + 1))
        terms = 1
        for place, there in self.positions(s, head, word):
            values = theta[place] if there is True else np.where(there, theta[place], 0.0)
            mid, size, terms = mid + values, size + np.abs(values), terms + 1
        return Ball(mid, outward(1.01 * terms * UNIT * size, terms))


# ---- trees ------------------------------------------------------------------------------------------------------------
def _merged(one: Array, other: Array) -> Array:
    """Return the largest sum, over splits (axis 2), of one's and the other's numbers at g and e, for every g + e: (b, spans, levels)."""
    levels = one.shape[3]
    best = np.full((one.shape[0], one.shape[1], levels), -np.inf)
    for g in range(levels):
        if np.isneginf(one[:, :, :, g]).all():
            continue
        best[:, :, g:] = np.maximum(best[:, :, g:], (one[:, :, :, g, None] + other[:, :, :, : levels - g]).max(axis=2))
    return best


def _shifted(values: Array, arc: Array, wrong: Any) -> Array:
    """Return values (b, spans, levels) with arcs' scores (b, spans) added, one level up where the arc is ``wrong``."""
    added = values + arc[:, :, None]
    moved = np.concatenate([np.full((*added.shape[:2], 1), -np.inf), added[:, :, :-1]], axis=2)
    return np.where(wrong[:, :, None], moved, added)


Charts = tuple[Array, Array, Array, Array]


def _charts(scores: Array, wrong: Any, levels: int) -> Charts:
    """Return the largest scores of spans with their head at the left, at the right, and ending in an arc, (b, T, T, levels) each."""
    b, T = scores.shape[0], scores.shape[1] - 1
    right, left, open_right, open_left = (np.full((b, T, T, levels), -np.inf) for _ in range(4))
    i = np.arange(T)
    right[:, i, i, 0] = left[:, i, i, 0] = 0.0
    for width in range(1, T):
        i = np.arange(T - width)
        j, low, step = i + width, i[:, None], np.arange(width)
        most = min(levels, width + 1)  # no more words have a head here
        both = _merged(right[:, low, low + step, :most], left[:, low + step + 1, j[:, None], :most])
        open_right[:, i, j, :most] = _shifted(both, scores[:, i + 1, j + 1], wrong[:, i + 1, j + 1])
        open_left[:, i, j, :most] = _shifted(both, scores[:, j + 1, i + 1], wrong[:, j + 1, i + 1])
        right[:, i, j, :most] = _merged(open_right[:, low, low + 1 + step, :most], right[:, low + 1 + step, j[:, None], :most])
        left[:, i, j, :most] = _merged(left[:, low, low + step, :most], open_left[:, low + step, j[:, None], :most])
    return right, left, open_right, open_left


def largest(scores: Array, wrong: Any, levels: int) -> Array:
    """Return the largest score of a projective tree of sentences (b, T + 1, T + 1) at every number of wrong arcs below ``levels``.

    By Eisner's algorithm, all spans of one length at once; ``wrong`` (b, T + 1, T + 1) says which arcs count. (b, levels)
    """
    right, left, *_ = _charts(scores, wrong, levels)
    whole = np.stack([left[:, 0], right[:, :, -1]], axis=2)  # (b, T, 2, levels)
    together = _merged(whole[:, :, :1], whole[:, :, 1:])
    return np.asarray(_shifted(together, scores[:, 0, 1:], wrong[:, 0, 1:]).max(axis=1))


def through(scores: Array) -> Array:
    """Return the largest score of a projective tree with each arc, (b, T + 1, T + 1), by what lies outside of every span."""
    b, T = scores.shape[0], scores.shape[1] - 1
    right, left, open_right, open_left = (chart[..., 0] for chart in _charts(scores, np.zeros(scores.shape, dtype=bool), 1))
    beyond_right, beyond_left, beyond_open_right, beyond_open_left = (np.full((b, T, T), -np.inf) for _ in range(4))
    root = scores[:, 0, 1:]
    beyond_left[:, 0], beyond_right[:, :, -1] = root + right[:, :, -1], root + left[:, 0]

    def raise_to(chart: Array, i: Any, j: Any, values: Array) -> None:
        chart[:, i, j] = np.maximum(chart[:, i, j], values)

    for width in range(T - 1, 0, -1):
        i = np.arange(T - width)
        j = i + width
        for step in range(width):
            s = i + 1 + step
            raise_to(beyond_open_right, i, s, beyond_right[:, i, j] + right[:, s, j])
            raise_to(beyond_right, s, j, beyond_right[:, i, j] + open_right[:, i, s])
            s = i + step
            raise_to(beyond_left, i, s, beyond_left[:, i, j] + open_left[:, s, j])
            raise_to(beyond_open_left, s, j, beyond_left[:, i, j] + left[:, i, s])
        arcs = np.maximum(beyond_open_right[:, i, j] + scores[:, i + 1, j + 1], beyond_open_left[:, i, j] + scores[:, j + 1, i + 1])
        for step in range(width):
            s = i + step
            raise_to(beyond_right, i, s, arcs + left[:, s + 1, j])
            raise_to(beyond_left, s + 1, j, arcs + right[:, i, s])
    best = np.full(scores.shape, -np.inf)
    best[:, 0, 1:] = root + left[:, 0] + right[:, :, -1]
    i, j = np.triu_indices(T, 1)
    best[:, i + 1, j + 1] = beyond_open_right[:, i, j] + open_right[:, i, j]
    best[:, j + 1, i + 1] = beyond_open_left[:, i, j] + open_left[:, i, j]
    return best


def nearest(heads: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the heads (T,) of the projective tree that shares the most arcs with a tree; ties go to the first split and the first top."""
    T = len(heads)
    shared = np.zeros((T + 1, T + 1))
    shared[heads, np.arange(1, T + 1)] = 1.0
    best = {(shape, i, i): (0.0, i) for shape in ("right", "left") for i in range(T)}

    def choose(spans: Any) -> tuple[float, int]:
        return max(spans, key=lambda found: (found[0], -found[1]))

    for width in range(1, T):
        for i in range(T - width):
            j = i + width
            both, split = choose((best["right", i, s][0] + best["left", s + 1, j][0], s) for s in range(i, j))
            best["open right", i, j], best["open left", i, j] = (both + shared[i + 1, j + 1], split), (both + shared[j + 1, i + 1], split)
            best["right", i, j] = choose((best["open right", i, s][0] + best["right", s, j][0], s) for s in range(i + 1, j + 1))
            best["left", i, j] = choose((best["left", i, s][0] + best["open left", s, j][0], s) for s in range(i, j))
    _, top = choose((shared[0, c + 1] + best["left", 0, c][0] + best["right", c, T - 1][0], c) for c in range(T))
    found = np.zeros(T, dtype=np.intp)
    spans = [("left", 0, top), ("right", top, T - 1)]
    while spans:
        shape, a, c = spans.pop()
        if a == c:
            continue
        split = best[shape, a, c][1]
        if shape == "right":
            spans += [("right", split, c), ("open right", a, split)]
        elif shape == "left":
            spans += [("left", a, split), ("open left", split, c)]
        else:
            found[c if shape == "open right" else a] = 1 + (a if shape == "open right" else c)
            spans += [("right", a, split), ("left", split + 1, c)]
    return found


# ---- bounds -----------------------------------------------------------------------------------------------------------
class DependencyTrees(Structured):
    """Projective trees of sentences, with hashed features of arcs."""

    sequences = True

    def __init__(self, options: Mapping[str, Any], k: int) -> None:
        self.k, self.n_scores, self.with_constant, self.bits = k, 1, False, int(options["hash_bits"])
        self.refuse_mixtures(options)
        self.psi = None if options["surrogate"] == "maxmin" else SurrogateOfMargin(options)

    def possible(self, features: ScoreMap, X: Any, groups: Any, rows: LearnedRows, arrays: Mapping[str, Array]) -> Any:
        """Return which heads the words of the best tree may have, (n, k)."""
        possible = np.zeros((X.shape[0], self.k), dtype=bool)
        for _, at in self._batches(starts_of(groups, X.shape[0]), levels=False):
            U = Arcs(X[at, 0], X[at, 1], self.bits).scores(arrays["theta"])
            with_arc = through(U.mid)
            best = with_arc.max(axis=(1, 2), keepdims=True)
            # either sum errs by this
            near = with_arc >= best - outward(2.0 * self._error(U, 0.0))[:, None, None]
            possible[at, : near.shape[1]] = near[:, :, 1:].transpose(0, 2, 1)
        return possible

    def bounds(self, features: ScoreMap, rows: LearnedRows, lam: float, arrays: Mapping[str, Array]) -> Bounds:
        """Return the bounds of a fit; `ValueError` for an array of the wrong shape, or a plane of a sentence or a head that is none."""
        theta, X = arrays["theta"], features.X
        if theta.shape != (2**self.bits,):
            raise ValueError(f"theta has the shape {theta.shape}, not {(2**self.bits,)}")
        start = starts_of(rows.groups, X.shape[0])
        counts = np.ones(len(start) - 1) if rows.counts is None else rows.counts[start[:-1]]
        share = inverse(ball(counts).sum())
        truth = self._truth(np.asarray(rows.y), start)
        ridge = (ball(theta) * theta).sum() * (0.5 * lam)
        p = None if self.psi is not None else _targets(arrays["predictor"], np.diff(start))
        losses = (self.above(X, theta, truth, start, p) * counts).sum() * share
        offset, square = self._mixture(X, arrays["r"], truth, start, counts)
        stages = self._relations(X, rows, start, counts, lam, arrays)
        return Bounds(ridge + losses, offset * share - square * share * share * inverse(ball(2.0 * lam)), ridge, stages)

    def _relations(
        self, X: Array, rows: LearnedRows, start: NDArray[np.intp], counts: Array, lam: float, arrays: Mapping[str, Array]
    ) -> dict[str, Bounds]:
        """Return the bounds of the relations of words, classes of the adversarial zero-one loss at the arcs of the true trees.

        Their lambda' has lambda' n' = lambda n for n sentences of n' words.
        """
        if rows.relations is None:
            return {}
        names, codes = np.unique(rows.relations, return_inverse=True)
        if len(names) == 1:
            return {}
        if not {"relations_theta", "relations_r"} <= arrays.keys():
            raise CannotError("nothing was kept of the relations")
        words = np.repeat(counts, np.diff(start))
        arcs = ScoreMap({"name": "linear"}, None, self._arc_rows(X, np.asarray(rows.y), start), len(names))
        loss = Surrogate({"name": "zero_one"}, len(names), list(map(str, names)))
        proof = {"theta": arrays["relations_theta"], "r": arrays["relations_r"]}
        scaled = lam * float(counts.sum()) / float(words.sum())
        return {"relations": bound(arcs, loss, LearnedRows(codes.ravel(), words, words, None), scaled, proof)}

    def _arc_rows(self, X: Array, heads: NDArray[np.intp], start: NDArray[np.intp]) -> sparse.csr_array:
        """Return the features of the arcs to words from these heads, (n, 2^bits)."""
        bits = max(8, self.bits - 6)
        at = np.empty((18, len(heads)), dtype=np.intp)
        for _, rows in self._batches(start, levels=False):
            s = np.repeat(np.arange(len(rows)), rows.shape[1])
            word = np.tile(np.arange(1, rows.shape[1] + 1), len(rows))
            place = rows.ravel()
            at[:, place] = Arcs(X[rows, 0], X[rows, 1], self.bits).of_relations(s, heads[place], word, bits)
        ones, owner = np.ones(at.size), np.tile(np.arange(len(heads)), 18)
        return sparse.csr_array((ones, (owner, at.ravel())), shape=(len(heads), 2**bits))

    def right_relations(
        self, X: Array, groups: Any, heads: NDArray[np.intp], truth: Any, rows: LearnedRows, arrays: Mapping[str, Array]
    ) -> tuple[Any, Any]:
        """Return which words have the right relation at the true head for certain, and which may have it, (n,) each."""
        names = np.unique(rows.relations)
        if len(names) == 1:
            return (truth == names[0],) * 2
        arcs = ScoreMap({"name": "linear"}, None, self._arc_rows(X, heads, starts_of(groups, len(heads))), len(names))
        likely = computed(arcs.scores(arcs.X, arrays["relations_theta"])).may_lead()
        at = np.minimum(np.searchsorted(names, truth), len(names) - 1)
        may = likely[np.arange(len(heads)), at] & (names[at] == truth)
        return may & (likely.sum(axis=1) == 1), may

    def _batches(self, start: NDArray[np.intp], levels: bool) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield numbers of sentences of the same length T (b,), and their rows (b, T)."""
        long = [T for T in np.diff(start).tolist() if levels and T > _LONGEST]
        if long:
            limit = f"the checker looks at trees of at most {_LONGEST} words by number of wrong heads"
            raise CannotError(f"a sentence of {min(long)} words: {limit}")
        return batches(start, lambda T: (T + 1) ** 2 * (T + 2 if levels else 2))

    def _truth(self, y: NDArray[np.intp], start: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the trees that are learned: the true ones where they are projective, else the nearest."""
        truth = y.copy()
        for _, rows in self._batches(start, levels=False):
            b, T = rows.shape
            shared = np.zeros((b, T + 1, T + 1))
            shared[np.arange(b)[:, None], y[rows], np.arange(1, T + 1)] = 1.0
            kept = largest(shared, np.zeros(shared.shape, dtype=bool), 1)[:, 0]
            for s in np.flatnonzero(kept < T):
                truth[rows[s]] = nearest(y[rows[s]])
        return truth

    def above(self, X: Array, theta: Array, truth: NDArray[np.intp], start: NDArray[np.intp], p: Array | None = None) -> Ball:
        """Return the surrogate of every sentence, (S,); of the max-min margin a bound by targets p of the heads of all words."""
        mid, rad = np.empty(len(start) - 1), np.empty(len(start) - 1)
        by_levels = self.psi is not None and self.psi.name != "margin"
        first = _first_heads(np.diff(start))
        for which, rows in self._batches(start, by_levels):
            U = Arcs(X[rows, 0], X[rows, 1], self.bits).scores(theta)
            cost = None
            if p is not None:
                cost = np.ones(U.mid.shape)
                cost[:, :, 1:] = 1.0 - p[first[rows][:, None, :] + np.arange(rows.shape[1] + 1)[:, None]]
            value = self.worst(U, truth[rows], by_levels, cost)
            mid[which], rad[which] = value.mid, value.rad
        return Ball(mid, rad)

    def worst(self, U: Ball, truth: NDArray[np.intp], by_levels: bool, cost: Array | None = None) -> Ball:
        """Return the surrogate of sentences of T words with scores U (b, T + 1, T + 1) and true heads (b, T), shape (b,).

        ``cost`` (b, T + 1, T + 1) are costs of at most 1 of arcs; None: 1 of every wrong one.
        """
        b, T = truth.shape
        wrong = np.ones(U.mid.shape, dtype=bool)
        wrong[np.arange(b)[:, None], truth, np.arange(1, T + 1)] = False
        own = U.mid[np.arange(b)[:, None], truth, np.arange(1, T + 1)]
        error = self._error(U, 0.0 if by_levels else 1.0)
        truths = Ball(own.sum(axis=1), error)
        if not by_levels:
            best = largest(U.mid + (wrong if cost is None else cost), np.zeros(wrong.shape, dtype=bool), 1)[:, 0]
            return Ball(best, error) - truths
        level = largest(U.mid, wrong, T + 1)
        none = np.isneginf(level)
        h = Ball(np.where(none, truths.mid[:, None] - _BELOW, level), error[:, None]) - truths[:, None]
        h.mid[:, 0], h.rad[:, 0] = 0.0, 0.0  # the truth itself
        assert self.psi is not None
        g = np.broadcast_to(np.arange(T + 1.0), level.shape)
        return self.psi.value(h, g, g).max(axis=1)

    @staticmethod
    def _error(U: Ball, cost: float) -> Array:
        """Return a number above the error of the score of any tree (b,), a sum in any order, where each wrong head costs so much."""
        T = U.mid.shape[1] - 1
        possible = ~np.eye(T + 1, dtype=bool)[:, 1:]
        size = np.where(possible, np.abs(U.mid[:, :, 1:]), 0.0).max(axis=1).sum(axis=1) + T * cost
        spread = np.where(possible, U.rad[:, :, 1:], 0.0).max(axis=1).sum(axis=1)
        return np.asarray(outward(spread + (4 * T + 8) * UNIT * 1.01 * size, 4 * T))

    def _mixture(self, X: Array, stored: Array, truth: NDArray[np.intp], start: NDArray[np.intp], counts: Array) -> tuple[Ball, Ball]:
        """Return n times what stored trees give D: constants, and the square of the mixture's features less those of the true trees."""
        sizes = np.diff(start)
        found = sequences_of(stored, start, int(sizes.max(initial=0)) + 1, truth, counts, self.psi)
        owner, plane, heads, true = found.owner, found.plane, found.labels, found.true
        place = found.rows - start[owner][plane]
        if (heads > sizes[owner][plane]).any() or (heads == place + 1).any():
            raise ValueError("r names a head that there is not")
        at = np.flatnonzero(heads != true)
        values = found.coefficient[plane[at]]
        mid, size, number = (np.zeros(2**self.bits) for _ in range(3))
        rad = np.zeros(2**self.bits)
        spread = np.broadcast_to(values.rad, values.mid.shape)
        length = sizes[owner][plane[at]]
        for T in np.unique(length).tolist():
            for part in np.array_split(np.flatnonzero(length == T), -(-int((length == T).sum()) * 2 * (T + 2) // _HELD)):
                arcs = at[part]
                which, s = np.unique(owner[plane[arcs]], return_inverse=True)
                rows = start[which][:, None] + np.arange(T)
                sentences = Arcs(X[rows, 0], X[rows, 1], self.bits)
                for side, sign in ((heads[arcs], 1.0), (true[arcs], -1.0)):
                    for position, there in sentences.positions(s.ravel(), side, place[arcs] + 1):
                        chosen = np.arange(len(arcs)) if there is True else np.flatnonzero(there)
                        position, some = position[chosen], part[chosen]
                        np.add.at(mid, position, sign * values.mid[some])
                        np.add.at(size, position, np.abs(values.mid[some]))
                        np.add.at(rad, position, spread[some])
                        np.add.at(number, position, 1.0)
        moments = Ball(mid, outward(rad + 1.01 * (number + 2.0) * UNIT * size, 4096))
        if self.psi is not None:
            return found.constant, (moments * moments).sum()
        # no prediction is expected to do better than the likeliest head of each word
        first, words, total = _first_heads(sizes), np.repeat(counts, sizes), int((sizes * (sizes + 1)).sum())
        added, removed = (sums(values, first[found.rows[at]] + side[at], total, found.terms) for side in (heads, true))
        truths = np.zeros(total)
        truths[first + truth] = words
        shares = added - removed + truths
        likeliest = Ball(*(np.maximum.reduceat(part, first) for part in (shares.mid, shares.rad)))
        return (ball(words) - likeliest).sum(), (moments * moments).sum()


def _first_heads(sizes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return where the heads of every word begin among those of all, T + 1 for a word of a sentence of T words."""
    heads = np.repeat(sizes, sizes) + 1
    return np.asarray(np.cumsum(heads) - heads, dtype=np.intp)


def _targets(p: Array, sizes: NDArray[np.intp]) -> Array:
    """Return the targets of the heads of all words, non-negative with sums of at most 1: a sum below 1 only adds to the loss."""
    first, size = _first_heads(sizes), int((sizes * (sizes + 1)).sum())
    if p.shape != (size,):
        raise ValueError(f"predictor has the shape {p.shape}, not {(size,)}")
    p = np.maximum(p, 0.0)
    total = np.repeat(outward(np.add.reduceat(p, first), int(sizes.max()) + 1), np.repeat(sizes, sizes) + 1)
    return np.asarray(np.where(total > 1.0, p / np.maximum(total, 1.0) * (1.0 - 8.0 * UNIT), p))
