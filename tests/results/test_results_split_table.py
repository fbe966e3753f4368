"""A table of splits: what is written is read again as it was, and what is wrong is named by its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advcli.core.errors import DataError
from advcli.results.split_table import COLUMNS, GivenSplit, digest_of, lines_of, read_splits, rows_text, table_text

HEAD = ",".join(COLUMNS)


@st.composite
def given_splits(draw):
    """Return the number of rows and splits of them, some with folds of one stage or two."""
    n = draw(st.integers(8, 40))
    splits = []
    for _ in range(draw(st.integers(1, 3))):
        order = draw(st.permutations(range(n)))
        cut, end = draw(st.integers(4, n - 2)), draw(st.integers(0, 1))
        train, test = np.array(order[:cut]), np.array(order[cut : n - end])
        folds = {}
        for stage in range(1, draw(st.integers(0, 2)) + 1):
            some = draw(st.permutations(train.tolist()))
            pairs = [(np.array(some[2:]), np.array(some[:2])), (train[train != some[0]], np.array(some[:1])), (train[:2], train[2:])]
            folds[stage] = pairs[: draw(st.integers(1, 3))]
        splits.append(GivenSplit(train, test, folds))
    return n, splits


@settings(deadline=None)  # reads files, and pandas at the first time
@given(given_splits())
def test_what_is_written_is_read_again(tmp_path_factory, made):
    n, splits = made
    path = tmp_path_factory.mktemp("table") / "splits.csv"
    other = lines_of("other", "ef", [GivenSplit(np.array([0]), np.array([1]))])
    path.write_text(table_text([*lines_of("mine", "ab", splits), *other]))
    found = read_splits(path, "mine", "ab", n)
    assert [dict(enumerate(map(str, split.parts()))) for split in found] == [dict(enumerate(map(str, split.parts()))) for split in splits]
    assert digest_of(found) == digest_of(splits)
    for mine, theirs in zip(splits, found, strict=True):
        assert mine.folds.keys() == theirs.folds.keys()
        for stage, pairs in mine.folds.items():
            assert all(np.array_equal(a, b) for pair in zip(pairs, theirs.folds[stage], strict=True) for a, b in zip(*pair, strict=True))


@given(st.lists(st.integers(0, 10**6), unique=True, max_size=30))
def test_rows_as_text_name_each_row_in_its_order(rows):
    words = [word.partition("-") for word in rows_text(rows).split()]
    assert [row for a, _, b in words for row in range(int(a), int(b or a) + 1)] == rows


def test_a_table_of_another_program_is_read(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(
        '"rows", "part", "split", "sha256", "dataset", "by"\n"0 1 2-4","train","1","ab","mine","R"\n"5","test","1","ab","mine","R"\n'
    )
    (split,) = read_splits(path, "mine", "ab", 6)
    assert (split.train.tolist(), split.test.tolist(), split.folds) == ([0, 1, 2, 3, 4], [5], {})


GOOD = ["mine,ab,1,train,0-5", "mine,ab,1,test,6-9"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["mine,ab,1,train,0-5", "mine,ab,1,test,6-10"], "line 3: the row 10 is out of range; the data set has the rows 0 to 9"),
        (["mine,ab,1,train,0-99999999999", "mine,ab,1,test,6"], "line 2: the row 99999999999 is out of range"),
        (["mine,ab,1,train,0-5", "mine,ab,1,test,5-9"], "line 3: the row 5 is in both parts of split 1"),
        (["mine,ab,1,train,0-5 3", "mine,ab,1,test,6"], "line 2: the row 3 stands there twice"),
        (["mine,ab,1,train,0 1 -2", "mine,ab,1,test,6"], "line 2: '-2' is no row number"),
        (["mine,ab,1,train,5-0", "mine,ab,1,test,6"], "line 2: the range 5-0 falls"),
        (["mine,ab,1,train,", "mine,ab,1,test,6"], "line 2: no rows"),
        (["mine,ab,1,train,0-5"], "split 1 has no part test"),
        ([*GOOD, "mine,ab,3,train,0-5", "mine,ab,3,test,6-9"], "has no split 2 of mine, but 3"),
        ([*GOOD, GOOD[0]], "line 4: train of split 1 stands in line 2 already"),
        (["mine,ab,one,train,0-5", GOOD[1]], "line 2: the split 'one' is no number"),
        (["mine,ab,1,learn,0-5", GOOD[1]], "line 2: the part 'learn' is none"),
        (["mine,cd,1,train,0-5", "mine,cd,1,test,6"], "has splits of other rows of mine: its checksum there is cd, here it is ab"),
        (["iris,cd,1,train,0-5"], "has no splits of the data set mine (checksum ab); it has those of iris"),
        ([*GOOD, "mine,ab,1,fold 1,6"], "line 4: fold 1 of split 1 has the row 6, which is no training row"),
        ([*GOOD, "mine,ab,1,fold 1 train,0"], "add the line fold 1"),
        ([*GOOD, "mine,ab,1,fold 1,0-5"], "no rows are left to fit to"),
        ([*GOOD, "mine,ab,1,fold 1,0", "mine,ab,1,fold 1 train,0-3"], "the row 0 is held out and fitted to"),
        ([*GOOD, "mine,ab,1,fold 2,0"], "the folds of split 1 are 2; number them from 1"),
        ([*GOOD, "mine,ab,1,stage 2 fold 1,0"], "folds of stage 2 and none of stage 1"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_place(tmp_path, lines, words):
    path = tmp_path / "splits.csv"
    path.write_text("\n".join([HEAD, *lines]) + "\n")
    with pytest.raises(DataError) as raised:
        read_splits(path, "mine", "ab", 10)
    assert words in str(raised.value)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("text", "words"), [(None, "No such file"), ("a,b\n1,2\n", "lacks the column dataset"), ("", "cannot be read")])
def test_a_file_that_is_no_table_is_refused(tmp_path, text, words):
    path: Path = tmp_path / "splits.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(DataError, match=words):
        read_splits(path, "mine", "ab", 10)
