"""Rules of splits: what each promises of its parts and of the folds of a search, for any groups, times and labels."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, TimeSeriesSplit

from advcli.config.protocol import Protocol
from advcli.core.errors import ConfigError, DataError
from advcli.data import make_dataset
from advcli.evaluation.part import Part
from advcli.evaluation.splits import share_of
from advcli.evaluation.splitters import splitter_names, splitter_of
from advcli.evaluation.splitters.base import FoldsOf, relation

FEW = st.integers(1, 4)
SEEDS = st.integers(0, 2**20)


def data(n, y=None, **columns):
    y = np.arange(n) % 2 if y is None else np.asarray(y)
    return make_dataset(name="mine", X=np.arange(n)[:, None], y=y, classes=list(range(int(y.max()) + 1)), feature_names=["a"], **columns)


def rule(name, seed=0, **options):
    return splitter_of(Protocol(splits=name, **options), seed)


def part_of(dataset, rows):
    numbers = np.arange(dataset.X.shape[0])
    return Part(dataset.X, dataset.y, group=dataset.group, time=dataset.time, numbers=numbers)[rows]


def folds_of(splitter, dataset, rows, stage=1):
    return splitter.folds(part_of(dataset, rows), FoldsOf("mine", 1, stage, 5))


def outcome(act):
    """Return what a call returns, or None, and the words by which it refuses."""
    try:
        return act(), ""
    except DataError as error:
        return None, str(error)


@given(st.lists(st.integers(0, 9), min_size=12, max_size=60), FEW, SEEDS, st.booleans())
def test_no_group_is_in_two_parts_nor_in_two_parts_of_a_fold(names, count, seed, held_out):
    groups = np.unique(names, return_inverse=True)[1]
    assume(len(set(names)) >= 6)
    dataset = data(len(names), group=groups)
    splitter = rule("grouped", seed, n_splits=count, folds=2, holdout=0.4 if held_out else None)
    splits, _ = splitter.splits(dataset)
    assert len(splits) == count
    for train, test in splits:
        assert sorted([*train, *test]) == list(range(len(names)))
        assert not set(groups[train]) & set(groups[test])
        assert len(set(groups[train])) == share_of(len(set(names)), 0.7)
        for fit, held in folds_of(splitter, dataset, train):
            assert sorted([*fit, *held]) == list(range(len(train)))
            assert not set(groups[train][fit]) & set(groups[train][held])


@given(st.lists(st.integers(0, 9), min_size=12, max_size=60), st.integers(2, 4))
def test_grouped_folds_are_those_of_scikit_learn_in_kind(names, folds):
    groups = np.unique(names, return_inverse=True)[1]
    assume(len(set(names)) >= folds)
    dataset = data(len(names), group=groups)
    ours = folds_of(rule("grouped", folds=folds), dataset, np.arange(len(names)))
    theirs = [*GroupKFold(folds).split(dataset.X, dataset.y, groups)]
    for pairs in (ours, theirs):
        assert len(pairs) == folds
        assert sorted(itertools.chain(*(held for _, held in pairs))) == list(range(len(names)))
        # every group is held out once, as a whole
        assert sorted(itertools.chain(*(set(groups[held]) for _, held in pairs))) == sorted(set(groups))


@given(st.lists(st.integers(0, 30), min_size=10, max_size=60), FEW, st.integers(2, 4), st.booleans())
def test_no_row_is_predicted_from_its_time_or_later(times, count, folds, held_out):
    times = np.array(times)
    dataset = data(len(times), time=times)
    splitter = rule("forward", n_splits=count, folds=folds, holdout=0.3 if held_out else None)
    found, refused = outcome(lambda: splitter.splits(dataset))
    # too many rows of one time, or fewer rows than test parts
    assert not refused or "leave a part without rows" in refused or "need a test row each" in refused
    if found is None:
        return
    splits, notes = found
    before: set[int] = set()
    for train, test in splits:
        assert times[train].max() < times[test].min()
        assert before <= set(train.tolist())
        before = {*train.tolist(), *test.tolist()}
    assert before == set(range(len(times)))
    assert bool(notes) == any("borders" in note for note in notes)
    pairs, refused = outcome(lambda: folds_of(splitter, dataset, splits[0][0]))
    assert not refused or "leave a part without rows" in refused or "lower protocol.folds" in refused
    if pairs is None:
        return
    assert len(pairs) == (1 if held_out else folds)
    learned = times[splits[0][0]]
    for fit, held in pairs:
        assert learned[fit].max() < learned[held].min()


@given(st.integers(20, 80), st.integers(2, 5), SEEDS)
def test_forward_splits_and_folds_are_those_of_scikit_learn_where_times_differ(n, count, seed):
    times = np.random.default_rng(seed).permutation(n)
    order, dataset = np.argsort(times), data(n, time=times)
    size = (n - share_of(n, 0.7)) // count
    splitter = rule("forward", n_splits=count, folds=count)
    theirs = TimeSeriesSplit(count, test_size=size).split(order)
    for mine, their in zip(splitter.splits(dataset)[0], theirs, strict=True):
        assert all(np.array_equal(rows, order[places]) for rows, places in zip(mine, their, strict=True))
    for mine, their in zip(folds_of(splitter, dataset, np.arange(n)), TimeSeriesSplit(count).split(order), strict=True):
        assert all(np.array_equal(rows, order[places]) for rows, places in zip(mine, their, strict=True))


@given(st.lists(st.integers(6, 20), min_size=2, max_size=4), FEW, SEEDS)
def test_stratified_parts_and_folds_have_the_shares_of_the_classes(sizes, count, seed):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    dataset = data(len(y), y)
    splitter = rule("stratified", seed, n_splits=count, folds=3)
    splits, _ = splitter.splits(dataset)
    for train, test in splits:
        assert sorted([*train, *test]) == list(range(len(y)))
        assert len(train) == share_of(len(y), 0.7)
        for code, size in enumerate(sizes):
            assert abs((y[train] == code).sum() - 0.7 * size) < 2
        pairs = folds_of(splitter, dataset, train)
        assert sorted(itertools.chain(*(held for _, held in pairs))) == list(range(len(train)))
        for code in range(len(sizes)):
            held = [(y[train][rows] == code).sum() for _, rows in pairs]
            assert max(held) - min(held) <= 1
    more, _ = rule("stratified", seed, n_splits=count + 2).splits(dataset)
    assert all(np.array_equal(a, b) for pair in zip(splits, more, strict=False) for a, b in zip(*pair, strict=True))


@pytest.mark.parametrize("given_rule", ["official", "author"])
def test_folds_of_given_splits_follow_the_columns_of_the_data(given_rule):
    groups, times = np.repeat(np.arange(10), 4), np.random.default_rng(0).permutation(40)
    train, test = np.arange(28), np.arange(28, 40)
    dataset = replace(data(40, group=groups), official=(train, test), splits=((train, test),))
    splitter = rule(given_rule, n_splits=1, folds=3)
    ((rows, _),) = splitter.splits(dataset)[0]
    for fit, held in folds_of(splitter, dataset, rows):
        assert not set(groups[rows][fit]) & set(groups[rows][held])
    in_time = replace(dataset, group=None, time=times)
    for fit, held in folds_of(splitter, in_time, rows):
        assert times[rows][fit].max() < times[rows][held].min()


def test_splits_that_overlap_otherwise_than_random_ones_are_told():
    grouped = rule("grouped", n_splits=3).splits(data(40, group=np.arange(40) // 4))[0]
    forward = rule("forward", n_splits=3).splits(data(40, time=np.arange(40)))[0]
    assert [relation(grouped), relation(forward), relation(forward[:1]), relation([forward[0]] * 2)] == ["", "growing", "", "same"]


@pytest.mark.parametrize(
    ("name", "options", "columns", "words"),
    [
        ("grouped", {}, {}, "dataset.group=COLUMN"),
        ("forward", {}, {}, "dataset.time=COLUMN"),
        ("grouped", {}, {"group": np.zeros(12, dtype=int)}, "one group"),
        ("grouped", {"n_splits": 1}, {"group": np.arange(12), "groups": np.arange(12) // 2}, "one sequence and two groups"),
        ("forward", {"n_splits": 5}, {"time": np.arange(12)}, "lower protocol.n_splits"),
        ("forward", {"n_splits": 1}, {"time": np.zeros(12)}, "12 rows have one time"),
        ("forward", {"n_splits": 1}, {"time": np.arange(12), "groups": np.arange(12)}, "has sequences"),
        ("stratified", {}, {"y": [0] * 11 + [1]}, "class 1 has one row"),
        ("stratified", {"train_size": 0.9}, {"y": [0, 1, 2] * 4}, "use protocol.splits=random"),
        ("stratified", {}, {"groups": np.arange(12)}, "has sequences"),
        ("official", {}, {}, "no official training and test rows"),
        ("authors", {}, {}, "did you mean author"),
    ],
)
def test_what_cannot_be_split_is_refused_in_one_line(name, options, columns, words):
    dataset = data(12, **columns)

    def split():
        splitter = rule(name, **options)
        return splitter.splits(splitter.attached(dataset))

    with pytest.raises((ConfigError, DataError)) as raised:
        split()
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_folds_need_as_many_groups_and_rows():
    dataset = data(12, group=np.arange(12) // 4, time=np.arange(12))
    with pytest.raises(DataError, match="the training part of split 1 has 3 groups, too few for 5 folds"):
        folds_of(rule("grouped", folds=5), dataset, np.arange(12))
    with pytest.raises(DataError, match="need 6 rows, and it has 3"):
        folds_of(rule("forward", folds=5), dataset, np.arange(3))


def test_every_rule_has_a_name_and_an_explanation():
    ours = {"author", "forward", "grouped", "official", "random", "stratified"}
    assert ours <= set(splitter_names())  # an example of a docstring may have registered another
    assert all(type(rule(name)).__doc__ for name in ours)
