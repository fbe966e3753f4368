"""The toy data of louche2015 and labelled texts."""

import gzip

import numpy as np
import pytest

from advcli.core.errors import ConfigError, DataError
from advcli.data import load

TOY = {"name": "toy", "source": "louche_toy", "runs": 3, "rows": 200, "test_rows": 500}


def test_every_run_is_a_linear_concept_on_the_circle(tmp_path):
    data = load(TOY, tmp_path, author_splits=True)
    assert data.X.shape == (3 * 700, 2)
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1.0, atol=1e-12)
    assert [(len(train), len(test)) for train, test in data.splits] == [(200, 500)] * 3
    rows = np.concatenate([np.concatenate(split) for split in data.splits])
    assert sorted(rows) == list(range(2100))
    for train, test in data.splits:
        # classes by the largest of linear scores of unit vectors are arcs: no class is met twice around the circle
        run = np.concatenate([train, test])
        around = data.y[run][np.argsort(np.arctan2(data.X[run, 1], data.X[run, 0]))]
        changes = int(np.sum(around != np.roll(around, 1)))
        assert changes == len(np.unique(around))


def test_the_margin_leaves_gaps_between_classes_and_its_kinds_differ(tmp_path):
    def gaps(**options):
        data = load({**TOY, "margin": 0.05, **options}, tmp_path)
        angles = []
        for run in range(3):
            rows = slice(700 * run, 700 * (run + 1))
            angle = np.arctan2(data.X[rows, 1], data.X[rows, 0])
            order = np.argsort(angle)
            border = data.y[rows][order] != np.roll(data.y[rows][order], -1)
            angles += list(np.diff(np.append(angle[order], angle[order][0] + 2 * np.pi))[border])
        return min(angles)

    # a distance of 0.05 to a boundary through the origin is an angle of at least 0.05 on either side
    assert gaps(margin_kind="distance") > 0.1
    # |w_t - w_k| <= 2, so a score margin of 0.05 is a distance of at least 0.025
    assert gaps() > 0.05


def test_a_distance_margin_keeps_all_classes(tmp_path):
    data = load({**TOY, "rows": 4000, "margin_kind": "distance"}, tmp_path, author_splits=True)
    assert all(len(np.unique(data.y[train])) == 10 for train, _ in data.splits)


def test_the_seed_decides(tmp_path):
    assert load(TOY, tmp_path).sha256 == load(TOY, tmp_path).sha256
    assert load(TOY, tmp_path).sha256 != load({**TOY, "seed": 1}, tmp_path).sha256


@pytest.mark.parametrize("change", [{"runs": 0}, {"margin": 0.5}, {"margin_kind": "angle"}, {"classes": 1}, {"rows": True}])
def test_refused_options_of_the_toy(tmp_path, change):
    with pytest.raises(ConfigError, match=f"dataset.{next(iter(change))}"):
        load({**TOY, **change}, tmp_path)


TEXT = {"name": "letters", "source": "text"}


def write(path, rows, head="text,split,target"):
    path.write_bytes(gzip.compress("\n".join([head, *rows]).encode()))


def test_texts_become_rows_of_length_one(tmp_path):
    write(tmp_path / "letters.csv.gz", ["apple pear apple,train,fruit", "oak elm,test,tree", "pear plum,train,fruit"])
    data = load(TEXT, tmp_path)
    assert data.classes == ("fruit", "tree")
    assert data.y.tolist() == [0, 1, 0]
    assert data.feature_names == ("apple", "elm", "oak", "pear", "plum")
    np.testing.assert_allclose(np.sqrt(data.X.multiply(data.X).sum(axis=1)), 1.0)
    assert load({**TEXT, "min_df": 2}, tmp_path).feature_names == ("pear",)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"name": "none"}, DataError, "is not here"),
        ({"text": "words"}, DataError, "no column 'words'"),
        ({"min_df": 9}, DataError, "no words are left"),
        ({"min_df": 0}, ConfigError, "min_df"),
        ({"stop_words": "german"}, ConfigError, "stop_words"),
    ],
)
def test_refused_texts(tmp_path, options, error, said):
    write(tmp_path / "letters.csv.gz", ["apple pear,train,fruit", "oak elm,test,tree"])
    with pytest.raises(error, match=said):
        load({**TEXT, **options}, tmp_path)


def test_the_folder_source_names_the_source_of_texts(tmp_path):
    (tmp_path / "MANIFEST.csv").write_text("name,file,rows,features,classes,task,sha256\nletters,letters.csv.gz,2,1,2,multiclass,\n")
    with pytest.raises(DataError, match=r"dataset\.source=text"):
        load({"name": "letters", "source": "folder"}, tmp_path)


def test_official_rows_of_the_folder(tmp_path):
    write(tmp_path / "two.csv.gz", ["1,train,a", "2,test,b", "3,train,b", "4,test,a"], head="x,split,target")
    data = load({"name": "two", "source": "folder"}, tmp_path)
    assert [rows.tolist() for rows in data.official] == [[0, 2], [1, 3]]
