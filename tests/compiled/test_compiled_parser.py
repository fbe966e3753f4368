"""Compiled features of arcs, searches of worst trees and training steps against plain Python over all projective trees."""

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.projective_trees import trees
from support.python_parser import arc_scores, features, tree_features, worst_tree

from advcli.core.compiled import kernels
from advcli.learners.structured.spaces.psi import make_psi
from advcli.learners.structured.stored_planes import PSI_KINDS

BITS = 10
KERNEL = kernels.parser
NONE = np.zeros(0)  # costs and shares of heads, which the max-min margin has alone
MAXMIN = 4


class Corpus:
    """Sentences of up to six words with true trees, and weights that are not hashed apart everywhere."""

    def __init__(self, seed, sizes=(3, 1, 5, 2, 4), scale=1.0):
        random = np.random.default_rng(seed)
        self.start = np.cumsum([0, *sizes])
        n = int(self.start[-1])
        self.words, self.tags = random.integers(2**48, size=n), random.integers(4, size=n)
        self.truth = np.concatenate([trees(size)[random.integers(len(trees(size)))] for size in sizes]).astype(np.int32)
        self.theta = random.normal(scale=scale, size=2**BITS)
        self.share = random.dirichlet(np.ones(len(sizes)))
        self.random, self.sizes = random, sizes

    @property
    def arrays(self):
        return self.words, self.tags, self.start

    def sentences(self):
        for first, last in zip(self.start[:-1], self.start[1:], strict=True):
            yield self.words[first:last], self.tags[first:last], tuple(self.truth[first:last].tolist())

    def differences(self, heads):
        """Return the features of a tree of every sentence less those of the true one, (S, 2^BITS)."""
        rows = zip(self.sentences(), heads, strict=True)
        return np.array([tree_features(w, t, other, BITS) - tree_features(w, t, own, BITS) for (w, t, own), other in rows])

    def survey(self, kind, beta, tolerance=1e-9, theta=None, cost=NONE):
        S = len(self.sizes)
        value, upper, slope, constant = (np.empty(S) for _ in range(4))
        heads = np.empty(self.start[-1], np.int32)
        theta = self.theta if theta is None else theta
        KERNEL.survey(kind, beta, *self.arrays, self.truth, theta, cost, tolerance, value, upper, heads, slope, constant)
        parts = [tuple(heads[a:b].tolist()) for a, b in zip(self.start[:-1], self.start[1:], strict=True)]
        return value, upper, parts, slope, constant


def features_of(words, tags, heads):
    """Return `tree_features`, which are asked for again and again."""
    return _features_of(tuple(words.tolist()), tuple(tags.tolist()), heads)


@cache
def _features_of(words, tags, heads):
    return tree_features(words, tags, heads, BITS)


def psis():
    return [(name, PSI_KINDS[name], 1.0 if name == "slack" else 0.5) for name in PSI_KINDS]


@given(st.integers(0, 2**32), st.lists(st.integers(1, 12), min_size=1, max_size=3), st.integers(8, 20))
@settings(max_examples=30)
def test_scores_of_arcs_are_those_of_plain_python(seed, sizes, bits):
    random = np.random.default_rng(seed)
    start, n = np.cumsum([0, *sizes]), sum(sizes)
    words, tags, theta = random.integers(2**48, size=n), random.integers(3, size=n), random.normal(size=2**bits)
    out = np.empty(sum((size + 1) ** 2 for size in sizes))
    KERNEL.scores(words, tags, start, theta, out)
    expected = [arc_scores(words[a:b], tags[a:b], theta).ravel() for a, b in itertools.pairwise(start)]
    np.testing.assert_allclose(out, np.concatenate(expected), rtol=0, atol=1e-12)


def test_an_arc_has_two_features_a_key_and_one_a_tag_between():
    at = features([5, 6, 7, 8, 9], [1, 2, 2, 3, 1], 5, 1, 20)
    assert len(at) == 2 * 17 + 2
    assert {place % 16 for place in at[17:34]} == {8 + 4}  # to the left, at distance four


def test_the_best_tree_is_the_best_of_all():
    for seed in range(10):
        corpus = Corpus(seed)
        value, heads = np.empty(5), np.empty(corpus.start[-1], np.int32)
        KERNEL.best(*corpus.arrays, corpus.theta, value, heads)
        for s, (words, tags, _) in enumerate(corpus.sentences()):
            scores = arc_scores(words, tags, corpus.theta)
            own = [sum(scores[head, word] for word, head in enumerate(each, start=1)) for each in trees(len(words))]
            assert value[s] == pytest.approx(max(own), abs=1e-10)
            assert tuple(heads[corpus.start[s] : corpus.start[s + 1]].tolist()) == trees(len(words))[int(np.argmax(own))]


@pytest.mark.parametrize(("name", "kind", "beta"), psis())
@given(seed=st.integers(0, 2**32), scale=st.sampled_from([0.02, 0.2, 1.0]))
@settings(max_examples=25)
def test_the_worst_tree_is_the_worst_of_all(name, kind, beta, seed, scale):
    corpus, psi = Corpus(seed, scale=scale), make_psi(name, beta if name == "scaling" else None)
    value, upper, heads, slope, constant = corpus.survey(kind, beta)
    for s, (words, tags, truth) in enumerate(corpus.sentences()):
        scores = arc_scores(words, tags, corpus.theta)
        largest, of = worst_tree(scores, truth, psi)
        assert value[s] == pytest.approx(largest, rel=1e-9, abs=1e-8)
        assert value[s] == pytest.approx(of[heads[s]], rel=1e-9, abs=1e-8)
        assert upper[s] >= largest - 1e-8 * (1.0 + abs(largest))
        # the plane touches psi there, and lies below it at the same tree under other weights
        h = sum(scores[a, m] - scores[b, m] for m, (a, b) in enumerate(zip(heads[s], truth, strict=True), start=1))
        assert slope[s] * h + constant[s] == pytest.approx(value[s], rel=1e-9, abs=1e-8)
        g = float(sum(a != b for a, b in zip(heads[s], truth, strict=True)))
        around = h + np.linspace(-3.0, 3.0, 13)
        assert (slope[s] * around + constant[s] <= psi.value(around, np.full(13, g)) + 1e-8).all()


@pytest.mark.parametrize(("name", "kind", "beta"), psis())
def test_a_search_that_ends_early_bounds_what_it_left(name, kind, beta):
    left = 0
    for seed in range(30):
        corpus = Corpus(seed, sizes=(5, 6, 6), scale=0.1)
        value, upper, *_ = corpus.survey(kind, beta, 0.5)
        exact = corpus.survey(kind, beta, 0.0)[0]
        assert (value <= exact + 1e-9).all()
        assert (exact <= upper + 1e-9).all()
        assert (upper <= value + 0.5 + 1e-9).all()
        left += int((value < exact - 1e-9).sum())
    assert left > 0 or name == "margin"


@given(st.integers(1, 6), st.integers(0, 2**32), st.booleans())
@settings(max_examples=60)
def test_levels_are_the_best_tree_at_every_number_of_wrong_heads(n, seed, ties):
    random = np.random.default_rng(seed)
    scores = random.normal(size=(n + 1, n + 1))
    scores = np.round(2.0 * scores) if ties else scores
    truth = trees(n)[random.integers(len(trees(n)))]
    level, heads = np.empty(n + 1), np.zeros((n + 1, n), np.int32)
    kernels.trees.levels(scores.ravel(), np.array(truth, np.int32), level, heads)
    best = np.full(n + 1, -np.inf)
    for each in trees(n):
        g = sum(a != b for a, b in zip(each, truth, strict=True))
        best[g] = max(best[g], sum(scores[head, word] for word, head in enumerate(each, start=1)))
    np.testing.assert_allclose(level, best, atol=1e-12)
    for g in np.flatnonzero(best > -np.inf):
        own = tuple(heads[g].tolist())
        assert own in trees(n)
        assert sum(a != b for a, b in zip(own, truth, strict=True)) == g
        assert sum(scores[head, word] for word, head in enumerate(own, start=1)) == pytest.approx(best[g], abs=1e-12)


def stored(corpus, P=6):
    """Return P trees of every sentence with weights; the first is the truth."""
    held = np.empty(corpus.start[-1] * P, np.int16)
    every = []
    for size, first, last, (_, _, truth) in zip(corpus.sizes, corpus.start[:-1], corpus.start[1:], corpus.sentences(), strict=True):
        own = [truth, *(trees(size)[corpus.random.integers(len(trees(size)))] for _ in range(P - 1))]
        held[first * P : last * P] = np.concatenate(own)
        every.append(own)
    return held, every, np.full(len(corpus.sizes), P, np.int32)


def test_mixtures_are_those_of_features():
    corpus, P = Corpus(3), 6
    held, every, used = stored(corpus, P)
    weight = corpus.random.normal(size=(5, P))
    a = np.array([corpus.differences([own[p] for own in every]) for p in range(P)])  # (P, S, D)
    theta = corpus.theta.copy()
    KERNEL.mixture(*corpus.arrays, corpus.truth, held, weight, used, theta)
    np.testing.assert_allclose(theta - corpus.theta, np.einsum("sp,psd->d", weight, a), atol=1e-10)


@pytest.mark.parametrize(("name", "kind", "beta"), psis())
def test_a_sweep_keeps_weights_and_mixture_in_step_and_raises_the_dual(name, kind, beta):
    corpus, P, lam = Corpus(5), 32, 3.0
    S = len(corpus.sizes)
    held = stored(corpus, P)[0]
    alpha, scale, offset, used = np.zeros((S, P)), np.zeros((S, P)), np.zeros((S, P)), np.ones(S, np.int32)
    alpha[:, 0], scale[:, 0] = 1.0, float(name == "margin")
    theta, gram, gap = np.zeros(2**BITS), np.zeros((S, P, P)), np.full(S, np.inf)
    before = 0.0
    for turn in range(300):
        stores = held, alpha, scale, offset, used, gram, NONE, NONE, lam / corpus.share
        KERNEL.sweep(kind, beta, *corpus.arrays, corpus.truth, theta, *stores, 1.0, -np.inf, gap, 5, 1e-9, turn)
        again = np.zeros(2**BITS)
        KERNEL.mixture(*corpus.arrays, corpus.truth, held, alpha * scale * corpus.share[:, None] / -lam, used, again)
        np.testing.assert_allclose(theta, again, atol=1e-10)
        np.testing.assert_allclose(alpha.sum(axis=1), 1.0, atol=1e-10)
        assert (alpha >= 0.0).all()
        for s, (first, last) in enumerate(itertools.pairwise(corpus.start)):
            words, tags, truth = corpus.words[first:last], corpus.tags[first:last], tuple(corpus.truth[first:last].tolist())
            trees_of = [tuple(each.tolist()) for each in held[first * P : last * P].reshape(P, -1)[: used[s]]]
            a = np.array([features_of(words, tags, each) - features_of(words, tags, truth) for each in trees_of])
            np.testing.assert_allclose(gram[s, : used[s], : used[s]], a @ a.T, atol=1e-10)
        dual = corpus.share @ (alpha * offset).sum(axis=1) - 0.5 * lam * theta @ theta
        assert dual >= before - 1e-12
        before = dual
    primal = 0.5 * lam * theta @ theta + corpus.share @ corpus.survey(kind, beta, theta=theta)[1]
    assert primal - dual <= 1e-3 * primal
    assert primal >= dual - 1e-12


@pytest.mark.parametrize(("name", "kind", "beta"), [*psis(), ("maxmin", MAXMIN, 0.0)])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=10)
def test_planes_are_gradients_by_differences(name, kind, beta, seed):
    """Values are convex: a plane lies between the differences of both sides, which are apart where there is a kink."""
    corpus = Corpus(seed, scale=0.2)
    cost = corpus.random.random(sum(size * (size + 1) for size in corpus.sizes)) if kind == MAXMIN else NONE
    here, _, heads, slope, _ = corpus.survey(kind, beta, 0.0, cost=cost)
    step = corpus.random.normal(size=corpus.theta.shape)
    ahead, behind = (corpus.survey(kind, beta, 0.0, corpus.theta + side * 1e-6 * step, cost)[0] for side in (1.0, -1.0))
    along = slope * (corpus.differences(heads) @ step)
    assert ((here - behind) / 1e-6 <= along + 1e-4).all()
    assert (along <= (ahead - here) / 1e-6 + 1e-4).all()


def by_words(corpus, values):
    """Return numbers of the heads of all words, n (n + 1) a sentence, as one array (n, n + 1) for each sentence."""
    ends = np.cumsum([size * (size + 1) for size in corpus.sizes])[:-1]
    return [part.reshape(size, size + 1) for size, part in zip(corpus.sizes, np.split(values, ends), strict=True)]


def test_the_worst_tree_of_the_max_min_margin_has_costs_of_heads():
    corpus = Corpus(4)
    cost = corpus.random.random(sum(size * (size + 1) for size in corpus.sizes))
    value, upper, heads, slope, constant = corpus.survey(MAXMIN, 0.0, cost=cost)
    for s, ((words, tags, truth), price) in enumerate(zip(corpus.sentences(), by_words(corpus, cost), strict=True)):
        scores = arc_scores(words, tags, corpus.theta)

        def f(tree, scores=scores):
            return sum(scores[head, word] for word, head in enumerate(tree, start=1))

        totals = {tree: f(tree) - f(truth) + sum(price[word, head] for word, head in enumerate(tree)) for tree in trees(len(words))}
        assert value[s] == upper[s] == pytest.approx(max(totals.values()), abs=1e-10)
        assert totals[heads[s]] == pytest.approx(max(totals.values()), abs=1e-10)
    assert (slope == 1.0).all()
    assert (constant == 0.0).all()


def test_a_sweep_of_the_max_min_margin_keeps_shares_and_targets_in_step():
    corpus, P, lam = Corpus(6), 32, 3.0
    S = len(corpus.sizes)
    held = stored(corpus, P)[0]
    alpha, scale, offset, used = np.zeros((S, P)), np.zeros((S, P)), np.zeros((S, P)), np.ones(S, np.int32)
    alpha[:, 0], scale[:, 0] = 1.0, 1.0
    theta, gram, gap = np.zeros(2**BITS), np.zeros((S, P, P)), np.full(S, np.inf)
    shares = np.concatenate(
        [np.eye(size + 1)[list(truth)].ravel() for size, (_, _, truth) in zip(corpus.sizes, corpus.sentences(), strict=True)]
    )
    cost, bounds = 1.0 - shares, []
    for turn in range(200):
        stores = held, alpha, scale, offset, used, gram, cost, shares, lam / corpus.share
        KERNEL.sweep(MAXMIN, 0.0, *corpus.arrays, corpus.truth, theta, *stores, 0.5, -np.inf, gap, 5, 1e-9, turn)
        again = np.zeros(2**BITS)
        KERNEL.mixture(*corpus.arrays, corpus.truth, held, alpha * corpus.share[:, None] / -lam, used, again)
        np.testing.assert_allclose(theta, again, atol=1e-10)
        loss = np.zeros(S)
        for s, (size, mu, p) in enumerate(zip(corpus.sizes, by_words(corpus, shares), by_words(corpus, 1.0 - cost), strict=True)):
            first, last = corpus.start[s : s + 2]
            expected = np.zeros((size, size + 1))
            for tree, weight in zip(held[first * P : last * P].reshape(P, -1), alpha[s], strict=True):
                expected[np.arange(size), tree] += weight
            np.testing.assert_allclose(mu, expected, atol=1e-10)
            np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-10)
            assert p.min() >= -1e-12
            loss[s] = (1.0 - mu.max(axis=1)).sum()
        dual = corpus.share @ loss - 0.5 * lam * theta @ theta
        primal = 0.5 * lam * theta @ theta + corpus.share @ corpus.survey(MAXMIN, 0.0, theta=theta, cost=cost)[1]
        assert primal >= dual - 1e-12
        bounds.append((primal, dual))
    primal, dual = min(bounds)[0], max(dual for _, dual in bounds)
    assert primal - dual <= 1e-3 * primal


@pytest.mark.parametrize("made", [-1, 0])
@pytest.mark.parametrize(("name", "kind", "beta"), psis())
def test_steps_with_mean_planes_are_those_of_their_definition(name, kind, beta, made):
    corpus, lam = Corpus(7), 2.0
    S, D = len(corpus.sizes), 2**BITS
    places = np.cumsum([0, *((size + 1) ** 2 for size in corpus.sizes)])
    parts, constant, theta = np.zeros(places[-1]), np.zeros(S), np.zeros(D)
    late = np.zeros(D if made == 0 else 0)
    means, constants, w = np.zeros((S, D)), np.zeros(S), np.zeros(D)
    total, sums = np.zeros(D), np.zeros(D)
    for _ in range(3):
        order = corpus.random.permutation(S)
        KERNEL.mean_sweep(kind, beta, *corpus.arrays, corpus.truth, order, theta, parts, constant, corpus.share, lam, made, late, 1e-9)
        for s in order:
            here = w if made < 0 else total / (-lam * max(made, 1))
            _, _, heads, slope, offset = corpus.survey(kind, beta, theta=here)
            plane = slope[s] * corpus.differences(heads)[s]
            if made < 0:
                move, rise = plane - means[s], offset[s] - constants[s]
                ahead, size = rise + move @ here, corpus.share[s] * (move @ move)
                gamma = min(1.0, lam * ahead / size) if ahead > 0.0 and size > 0.0 else float(ahead > 0.0)
                means[s] += gamma * move
                constants[s] += gamma * rise
                w = w - gamma * corpus.share[s] / lam * move
            else:
                made += 1
                means[s] += plane
                constants[s] += offset[s]
                total = total + S * corpus.share[s] * plane
                sums = sums + S * corpus.share[s] * made * plane
        np.testing.assert_allclose(theta, w if made < 0 else total, atol=1e-8)
        np.testing.assert_allclose(constant, constants, atol=1e-8)
        mixture = np.zeros(D)
        KERNEL.arc_mixture(*corpus.arrays, parts, corpus.share, mixture)
        np.testing.assert_allclose(mixture, corpus.share @ means, atol=1e-8)
        if made >= 0:
            np.testing.assert_allclose(late, sums, atol=1e-8)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"theta": np.zeros(300)}, "power of two"),
        ({"theta": np.zeros(128)}, "power of two"),
        ({"tags": np.zeros(3, np.int64)}, "words"),
        ({"start": np.array([0, 2, 2, 15])}, "sentence is empty"),
        ({"start": np.array([0, 3, 2, 15])}, "fall"),
        ({"value": np.zeros(2)}, "value"),
        ({"heads": np.zeros(2, np.int32)}, "heads"),
    ],
)
def test_what_does_not_fit_is_refused(change, why):
    corpus = Corpus(0)
    given = {"words": corpus.words, "tags": corpus.tags, "start": corpus.start, "theta": corpus.theta}
    given |= {"value": np.zeros(5), "heads": np.zeros(15, np.int32)}
    with pytest.raises(ValueError, match=why):
        KERNEL.best(**(given | change))


def test_heads_outside_their_sentence_are_refused():
    corpus = Corpus(0)
    for head in (-1, 4, 1):
        truth = corpus.truth.copy()
        truth[0] = head
        corpus.truth = truth
        with pytest.raises(ValueError, match="heads must lie in"):
            corpus.survey(0, 0.0)


def test_a_sentence_of_more_than_a_thousand_words_is_refused():
    words = np.zeros(1001, np.int64)
    with pytest.raises(ValueError, match="at most 1000 words"):
        KERNEL.best(words, words, np.array([0, 1001]), np.zeros(256), np.zeros(1), np.zeros(1001, np.int32))
