"""Data sets by name: scikit-learn's, made-up ones, the folder of the papers' sets, their YAML files and the lists."""

from __future__ import annotations

import csv
import gzip
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support.composed import choice
from support.counting import Calls

from advcli.core.errors import ConfigError, DataError
from advcli.data import Dataset, catalogue, check_trainable, default_options, is_ordered, list_datasets, load, show, source_options
from advcli.data.catalogue import CATALOGUE, ordinal_edges, stored_set
from advcli.data.manifest import find_file, read_manifest
from advcli.data.tables.options import TableOptions
from advcli.data.tables.table import read_table
from advcli.data.tables.target import cut_target

CONF = Path(__file__).parents[2] / "conf" / "dataset"
YAML = sorted(path.stem for path in CONF.glob("*.yaml"))
TEMPLATES = ("csv", "folder", "mapped", "openml")  # their data are named by the user
BUNDLED = {"iris": (150, 4, 3), "wine": (178, 13, 3), "breast_cancer": (569, 30, 2), "digits": (1797, 64, 10)}

# fathony2018, Table 1: classes, train rows, test rows, features
TABLE_1 = {
    "iris": (3, 105, 45, 4),
    "glass": (6, 149, 65, 9),
    "redwine": (10, 1119, 480, 11),
    "ecoli": (8, 235, 101, 7),
    "vehicle": (4, 592, 254, 18),
    "segment": (7, 1617, 693, 19),
    "sat": (7, 4435, 2000, 36),
    "optdigits": (10, 3823, 1797, 64),
    "pageblocks": (5, 3831, 1642, 10),
    "libras": (15, 252, 108, 90),
    "vertebral": (3, 217, 93, 6),
    "breasttissue": (6, 74, 32, 9),
}
# fathony2018, Table 3
TABLE_3 = {
    "diabetes": (5, 30, 13, 2),
    "pyrimidines": (5, 51, 23, 27),
    "triazines": (5, 130, 56, 60),
    "wisconsin": (5, 135, 59, 32),
    "machinecpu": (10, 146, 63, 6),
    "autompg": (10, 274, 118, 7),
    "boston": (5, 354, 152, 13),
    "stocks": (5, 665, 285, 9),
    "abalone": (10, 2923, 1254, 10),
    "bank": (10, 5734, 2458, 8),
    "computer": (10, 5734, 2458, 21),
    "calhousing": (10, 14447, 6193, 8),
}
# Classes that occur where the printed number is another: values of a score that nobody gave, an empty class.
OBSERVED = {"redwine": 6, "sat": 6}
LEVELS = {"esl": 9, "lev": 5, "swd": 4, "era": 9}


def options(name: str, **changes: Any) -> dict[str, Any]:
    return {**choice("dataset", name), **changes}


def check_invariants(data: Dataset) -> None:
    n, d = data.X.shape
    assert data.X.dtype == np.float64
    assert np.all(np.isfinite(data.X))
    assert data.y.shape == (n,)
    assert data.y.dtype == np.intp
    assert np.array_equal(np.unique(data.y), np.arange(len(data.classes)))
    assert len(data.feature_names) == len(set(data.feature_names)) == d
    assert {type(label) for label in data.classes} <= {int, float, str}
    assert len(data.sha256) == 64


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_sets_need_no_folder(name: str, tmp_path: Path) -> None:
    data = load(options(name), tmp_path / "nowhere")
    check_invariants(data)
    assert (*data.X.shape, len(data.classes)) == BUNDLED[name]
    assert data.X.flags.c_contiguous
    check_trainable(data, 5)
    assert load(options(name), tmp_path).sha256 == data.sha256


def test_iris_has_fishers_values(tmp_path: Path) -> None:
    data = load(options("iris"), tmp_path)
    assert data.classes == ("setosa", "versicolor", "virginica")
    assert data.X[[34, 37]].tolist() == [[4.9, 3.1, 1.5, 0.2], [4.9, 3.6, 1.4, 0.1]]
    assert data.sizes == (105, 45)


def test_unknown_bundled_set(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="did you mean wine"):
        load({"name": "wines", "source": "sklearn"}, tmp_path)


@pytest.mark.parametrize("name", ["synthetic_blobs", "synthetic_ordinal"])
def test_synthetic_sets_are_functions_of_their_options(name: str, tmp_path: Path) -> None:
    data = load(options(name), tmp_path)
    check_invariants(data)
    check_trainable(data, 5)
    assert data.sha256 == load(options(name), tmp_path).sha256
    assert np.ptp(list(data.class_sizes().values())) <= 1
    for change in ({"seed": 1}, {"noise": 2.0}, {"rows": 299}, {"flip": 0.2}, {"classes": 4}):
        other = load(options(name, **change), tmp_path)
        check_invariants(other)
        assert other.sha256 != data.sha256
    assert load(options(name, flip=1.0, rows=20), tmp_path).y.size == 20
    for wrong in ({"seed": -1}, {"noise": -1.0}, {"flip": 1.5}, {"rows": 5}, {"classes": 1}, {"kind": "blob"}, {"features": 2.5}):
        with pytest.raises(ConfigError, match=f"dataset.{next(iter(wrong))}"):
            load(options(name, **wrong), tmp_path)


def test_synthetic_noise_and_flip_do_what_they_say(tmp_path: Path) -> None:
    exact = load(options("synthetic_ordinal", noise=0.0, features=1), tmp_path)
    assert abs(np.corrcoef(exact.X[:, 0], exact.y)[0, 1]) > 0.9
    order = np.argsort(exact.X[:, 0])
    assert np.all(np.diff(exact.y[order]) >= 0) or np.all(np.diff(exact.y[order]) <= 0)
    clean, flipped = (load(options("synthetic_blobs", flip=flip, rows=2000), tmp_path) for flip in (0.0, 0.3))
    assert np.array_equal(clean.X, flipped.X)
    assert 0.25 < np.mean(clean.y != flipped.y) < 0.35


@pytest.mark.parametrize("name", YAML)
def test_every_key_of_every_yaml_file_is_known(name: str) -> None:
    values = options(name)
    assert values["name"] == name
    assert set(values) <= set(source_options(values["source"]))


@pytest.mark.parametrize("name", YAML)
def test_a_yaml_file_holds_only_what_is_its_own(name: str) -> None:
    """No value that it inherits is written again."""

    def read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        defaults = yaml.safe_load(path.read_text())
        inherited: dict[str, Any] = {}
        for parent in defaults.pop("defaults", ()):
            if parent != "_self_":
                folder = CONF.parent if parent.startswith("/") else path.parent
                values = read(folder / f"{parent.removeprefix('/').removesuffix('@_here_')}.yaml")
                inherited |= {**values[0], **values[1]}
        return inherited, defaults

    inherited, defaults = read(CONF / f"{name}.yaml")
    assert {**inherited, **defaults} == options(name)
    assert [key for key, value in defaults.items() if key in inherited and inherited[key] == value] == []


@pytest.mark.parametrize("name", [name for name in YAML if name not in TEMPLATES])
def test_yaml_files_agree_with_the_defaults(name: str, tmp_path: Path) -> None:
    assert options(name) == default_options(name, tmp_path)


def test_every_known_set_has_a_yaml_file(tmp_path: Path) -> None:
    names = {entry.name for entry in list_datasets(tmp_path)}
    assert names - set(CATALOGUE["unavailable"]) == set(YAML) - set(TEMPLATES)
    assert set(TABLE_1) | set(TABLE_3) | set(LEVELS) | {"letter"} == set(CATALOGUE["folder"])


@pytest.mark.parametrize("name", {**TABLE_1, **TABLE_3})
def test_sets_of_the_tables(shared: Path, name: str) -> None:
    printed_classes, train, test, features = {**TABLE_1, **TABLE_3}[name]
    with Calls() as calls:
        data = load(options(name, source="folder"), shared)
    # calls instead of seconds: some 6 to 15 a row and some for each column, none for each cell
    assert calls.count < 10_000 + 20 * (train + test) + 200 * features
    check_invariants(data)
    assert data.X.shape == (train + test, features)
    assert data.sizes == (train, test)
    assert len(data.classes) == OBSERVED.get(name, printed_classes)
    assert data.ordered is (name in TABLE_3)
    assert data.ordered is is_ordered(options(name, source="folder"))
    if name in OBSERVED:
        assert any("classes" in note for note in data.notes)
    check_trainable(data, 5)


@pytest.mark.parametrize("name", [*LEVELS, "letter"])
def test_further_sets(shared: Path, name: str) -> None:
    data = load(options(name), shared)
    check_invariants(data)
    assert len(data.classes) == LEVELS.get(name, 26)
    assert data.ordered is (name in LEVELS)
    assert data.ordered is is_ordered(options(name))
    assert list(data.classes) == sorted(data.classes)
    check_trainable(data, 5)


@pytest.mark.parametrize("name", [*TABLE_1, *TABLE_3, *LEVELS, "letter"])
def test_small_classes_are_allowed_where_they_are_needed(shared: Path, name: str) -> None:
    data = load(options(name, source="folder", allow_small_classes=False), shared)
    if min(data.class_sizes().values()) < 5:
        with pytest.raises(DataError, match="allow_small_classes"):
            check_trainable(data, 5)
    else:
        check_trainable(data, 5)


def test_abalone_has_one_hot_sex(shared: Path) -> None:
    data = load(options("abalone"), shared)
    assert data.feature_names[:3] == ("Sex=F", "Sex=I", "Sex=M")
    assert np.all(data.X[:, :3].sum(axis=1) == 1)
    with pytest.raises(DataError, match=r"'Sex' holds text \('M' in row 1 \(line 2\)\).*dataset.categorical=\[Sex\]"):
        load(options("abalone", categorical=[]), shared)


@pytest.mark.data("stocks")
def test_the_cut_is_an_option(shared: Path) -> None:
    even = load(options("stocks", cut="equal_frequency", n_classes=5, edges=None), shared)
    assert np.ptp(list(even.class_sizes().values())) <= 10  # equal values stay together
    halves = load(options("stocks", edges=[50]), shared)
    assert len(halves.classes) == 2
    with pytest.raises(DataError, match="not classes; cut it"):
        load(options("stocks", cut="none", edges=None), shared)


@pytest.mark.parametrize("name", sorted(ordinal_edges()))
def test_the_benchmarks_classes_are_cut_where_no_target_lies(shared: Path, name: str) -> None:
    path = Path(catalogue.__file__).parent / "ordinal_edges.csv"
    with path.open(newline="", encoding="utf-8") as stream:
        rows = {row["dataset"]: row for row in csv.DictReader(stream)}
    assert set(rows) == {name for name, facts in CATALOGUE["folder"].items() if facts.options.get("cut") == "edges"}
    assert {name for name in TABLE_3 if name not in rows} == {"bank", "computer", "calhousing"}
    target = read_table(find_file(name, None, shared, read_manifest(shared))).frame["target"].to_numpy(float)
    assert not np.isin(ordinal_edges()[name], target).any()
    assert list(load(options(name), shared).class_sizes().values()) == [int(count) for count in rows[name]["rows_per_class"].split(";")]
    assert rows[name]["source"]


@pytest.mark.parametrize("name", sorted(set(ordinal_edges()) - {"diabetes"}))
def test_equal_widths_of_the_adjusted_targets_are_the_benchmarks_classes(shared: Path, name: str) -> None:
    # the benchmark's rule: an inner edge belongs to the class below it, so the mirrored targets are cut with edges to the class above;
    # diabetes is left out, whose classes were edited by hand there, and pyrimidines has ten classes joined in pairs
    pulled_in = {"machinecpu": (0, 500), "pyrimidines": (0.44, 1)}
    moved = {465: 425, 489: 439, 510: 460}
    target = read_table(find_file(name, None, shared, read_manifest(shared))).frame["target"].to_numpy(float)
    if name == "machinecpu":
        target = np.array([moved.get(value, value) for value in target])
    target = np.clip(target, *pulled_in.get(name, (-np.inf, np.inf)))
    k = 10 if name == "pyrimidines" else TABLE_3[name][0]
    mirrored, levels, _ = cut_target(-target, TableOptions(cut="equal_width", n_classes=k))
    classes = k - np.array(levels)[mirrored]
    assert np.array_equal(classes // 2 if name == "pyrimidines" else classes, load(options(name), shared).y)


def test_iris_of_the_folder_differs_in_two_rows(shared: Path) -> None:
    ours, theirs = load(options("iris"), shared), load(options("iris", source="folder"), shared)
    assert np.array_equal(ours.y, theirs.y)
    assert np.unique(np.argwhere(ours.X != theirs.X)[:, 0]).tolist() == [34, 37]


def test_the_official_split_is_no_feature(shared: Path) -> None:
    data = load(options("sat"), shared)
    assert "split" not in data.feature_names
    assert any("train 4435, test 2000" in note for note in data.notes)


@pytest.mark.parametrize("name", [name for sets in CATALOGUE.values() for name, known in sets.items() if known.files])
def test_catalogue_agrees_with_the_manifest_and_the_files(shared: Path, name: str) -> None:
    with (shared / "MANIFEST.csv").open(newline="") as stream:
        manifest = {row["name"]: row for row in csv.DictReader(stream)}
    row, known = manifest[name], stored_set(name)
    assert known is not None
    if known.source == "folder":
        assert (known.rows, known.features, known.task) == (int(row["rows"]), int(row["features"]), row["task"])
        assert known.classes == (int(row["classes"]) if row["classes"] else None)
    for file, sha256 in known.files.items():
        plain = gzip.decompress((shared / file).read_bytes())
        assert hashlib.sha256(plain).hexdigest() == sha256
    if known.upstream is not None:
        assert row["source_repo"] == f"{known.upstream.repository}@{known.upstream.commit}"
        assert len(known.upstream.urls()) == len(known.upstream.paths)
        if known.upstream.columns:
            heading = gzip.decompress((shared / row["file"]).read_bytes()).decode().split("\n", 1)[0].split(",")
            assert [column for column in heading if column not in ("split", "target")] == list(known.upstream.columns)


def test_the_repository_has_what_the_catalogue_says_it_ships() -> None:
    """Those files and no others, each with the checksum of its line in the manifest, which is what a mirror's users compare."""
    folder = Path(__file__).resolve().parents[2] / "data"
    manifest = read_manifest(folder)
    shipped = {name for sets in CATALOGUE.values() for name, known in sets.items() if known.shipped}
    assert {known for known in CATALOGUE["folder"] if CATALOGUE["folder"][known].licence == "not stated"}.isdisjoint(shipped)
    for name in shipped:
        assert hashlib.sha256((folder / manifest[name]["file"]).read_bytes()).hexdigest() == manifest[name]["sha256"], name
    assert set(manifest) == {name for sets in CATALOGUE.values() for name, known in sets.items() if known.files}


def test_every_set_that_is_not_shipped_has_public_files_or_a_reason() -> None:
    for sets in CATALOGUE.values():
        for name, known in sets.items():
            assert not known.files or known.shipped or known.upstream is not None, name
            assert known.source != "unavailable" or known.note, name


def test_all_of_table_1_has_a_public_address() -> None:
    assert all(CATALOGUE["folder"][name].upstream is not None for name in TABLE_1)


@pytest.mark.parametrize(
    ("name", "rows", "train", "classes"), [("glass", 214, 149, (1, 2, 3, 5, 6, 7)), ("diabetes", 43, 30, (1, 2, 3, 4, 5))]
)
def test_author_splits(shared: Path, name: str, rows: int, train: int, classes: tuple[int, ...]) -> None:
    data = load(options(name), shared, author_splits=True)
    check_invariants(data)
    assert data.classes == classes
    assert data.splits is not None
    assert len(data.splits) == 20
    for remaining, right in data.splits:
        assert remaining.size == train
        assert np.array_equal(np.sort(np.concatenate([remaining, right])), np.arange(rows))
    first = [int(number) for number in (shared / "author_splits" / f"{name}.train").read_text().split("\n")[0].split(",")]
    assert (data.splits[0][0] + 1).tolist() == first
    assert load(options(name), shared).splits is None


@pytest.mark.data("diabetes")
def test_author_levels_of_diabetes(shared: Path) -> None:
    data = load(options("diabetes"), shared, author_splits=True)
    assert list(data.class_sizes().values()) == [5, 6, 22, 6, 4]
    assert data.ordered
    assert data.X[0].tolist() == [0.9, -11.6]
    with (shared / "author_splits" / "diabetes_row_map.csv").open(newline="") as stream:
        pairs = [(int(row["author_row"]) - 1, int(row["shared_row"]) - 1) for row in csv.DictReader(stream)]
    cut = load(options("diabetes"), shared)
    assert all(np.array_equal(data.X[author], cut.X[ours]) for author, ours in pairs)
    assert len(pairs) == 43
    assert all(data.y[author] == cut.y[ours] for author, ours in pairs)


@pytest.mark.parametrize("name", ["iris", "wine", "synthetic_blobs", "vehicle"])
def test_other_sets_have_no_author_splits(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="glass,diabetes"):
        load(options(name), tmp_path, author_splits=True)


def test_missing_and_changed_author_splits(shared: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="advcli data fetch glass"):
        load(options("glass"), tmp_path, author_splits=True)
    shutil.copytree(shared / "author_splits", tmp_path / "author_splits", copy_function=shutil.copyfile)
    (tmp_path / "author_splits").chmod(0o755)
    with pytest.raises(DataError, match=r"is not here.*advcli data fetch glass"):
        load(options("glass"), tmp_path, author_splits=True)
    (tmp_path / "glass.csv.gz").write_bytes((shared / "glass.csv.gz").read_bytes())
    assert load(options("glass"), tmp_path, author_splits=True).splits is not None
    with pytest.raises(DataError, match=r"do not apply; leave dataset\.features"):
        load(options("glass", drop=["Fe"]), tmp_path, author_splits=True)
    (tmp_path / "author_splits" / "glass.test").write_text("1,2,3\n")
    with pytest.raises(DataError, match="other checksum"):
        load(options("glass"), tmp_path, author_splits=True)


def test_splits_must_be_permutations(tmp_path: Path) -> None:
    from advcli.data.author_splits import _splits

    assert [[part.tolist() for part in pair] for pair in _splits("a", ["1,3"], ["2"], 3, tmp_path)] == [[[0, 2], [1]]]
    for train, test in ((["1,2"], ["2"]), (["1"], ["2"]), (["0,1"], ["2"]), (["1,2"], ["4"])):
        with pytest.raises(DataError, match="line 1"):
            _splits("a", train, test, 3, tmp_path)
    with pytest.raises(DataError, match="has 2 splits"):
        _splits("a", ["1,2", "1,3"], ["3"], 3, tmp_path)


@pytest.mark.parametrize("name", ["yeast", "bibtex", "imclef07a"])
def test_sets_of_labels_name_their_source(shared: Path, name: str) -> None:
    with pytest.raises(DataError, match=f"load it with dataset={name} or dataset.source=hierarchical"):
        load({"name": name, "source": "folder"}, shared)
    assert next(entry for entry in list_datasets(shared) if entry.name == name).source == "hierarchical"


def test_sets_of_another_task_cannot_be_loaded_yet(tmp_path: Path) -> None:
    (tmp_path / "MANIFEST.csv").write_text("name,file,rows,features,classes,task,sha256\npairs,pairs.csv,2,1,2,ranking,0\n")
    with pytest.raises(DataError, match="is a ranking set, which cannot be loaded yet"):
        load({"name": "pairs", "source": "folder"}, tmp_path)
    assert next(entry for entry in list_datasets(tmp_path) if entry.name == "pairs").command == "not loadable yet"


@pytest.mark.data("wnut17_ner")
def test_a_set_of_sequences_names_its_source(shared: Path) -> None:
    with pytest.raises(DataError, match=r"is a set of sequences: load it with dataset\.source=sequences"):
        load({"name": "wnut17_ner", "source": "folder"}, shared)
    assert next(entry for entry in list_datasets(shared) if entry.name == "wnut17_ner").source == "sequences"


def test_missing_and_unknown_sets(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"run `advcli data fetch glass`, or point data_dir= or ADVCLI_DATA"):
        load(options("glass"), tmp_path / "nowhere")
    with pytest.raises(DataError, match="did you mean glass"):
        load({"name": "glas", "source": "folder"}, tmp_path)


def make_folder(folder: Path, text: str = "a,b,target\n1,2,x\n3,4,y\n5,6,x\n", sha256: str | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "toy.csv").write_text(text)
    sha256 = hashlib.sha256(text.encode()).hexdigest() if sha256 is None else sha256
    (folder / "MANIFEST.csv").write_text(
        f"name,file,rows,features,classes,task,sha256,upstream_citation\ntoy,toy.csv,3,2,2,multiclass,{sha256},Somebody (2020)\n"
    )
    return folder


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    data = load({"name": "toy", "source": "folder"}, folder)
    assert data.classes == ("x", "y")
    entry = next(entry for entry in list_datasets(folder) if entry.name == "toy")
    assert (entry.rows, entry.features, entry.classes, entry.here) == (3, 2, 2, True)
    assert (entry.command, entry.citation) == ("dataset=folder dataset.name=toy", "Somebody (2020)")
    (folder / "free.csv").write_text("a,target\n1,x\n2,y\n")
    assert load({"name": "free", "source": "folder"}, folder).X.shape == (2, 1)
    assert load({"name": "any", "source": "folder", "file": "free.csv"}, folder).X.shape == (2, 1)
    assert [entry.name for entry in list_datasets(folder)].count("free") == 1
    assert show("free", folder)["rows"] == "2"


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    (folder / "toy.csv").write_text("a,b,target\n1,2,x\n3,4,y\n5,7,x\n")
    with pytest.raises(DataError, match="damaged or was changed"):
        load({"name": "toy", "source": "folder"}, folder)


@pytest.mark.parametrize("column", ["label_1", "sentence_id"])
def test_reserved_columns(tmp_path: Path, column: str) -> None:
    folder = make_folder(tmp_path, f"a,{column},target\n1,2,x\n3,4,y\n")
    with pytest.raises(DataError, match=f"reserved column '{column}'"):
        load({"name": "toy", "source": "folder"}, folder)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("name,file\ntoy,toy.csv\n", "is no list of data sets: its first line lacks rows"),
        ("name,file,rows,features,classes,task,sha256\ntoy,toy.csv\n", "row 1 has no rows"),
        (b"\xff\xfe\xff", "not CSV in UTF-8"),
        ("name,file,rows,features,classes,task,sha256\ntoy,../toy.csv,3,2,2,multiclass,\n", "only plain names"),
    ],
)
def test_damaged_manifest(tmp_path: Path, content: str | bytes, words: str) -> None:
    (tmp_path / "MANIFEST.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError, match=words):
        load({"name": "toy", "source": "folder"}, tmp_path)


def test_plain_csv_stands_in_for_the_packed_one(tmp_path: Path) -> None:
    assert find_file("toy", None, tmp_path, {}) == tmp_path / "toy.csv.gz"
    (tmp_path / "toy.csv").touch()
    assert find_file("toy", None, tmp_path, {}) == tmp_path / "toy.csv"
    (tmp_path / "toy.csv.gz").touch()
    assert find_file("toy", None, tmp_path, {}) == tmp_path / "toy.csv.gz"


def test_list_without_a_folder(tmp_path: Path) -> None:
    entries = list_datasets(tmp_path / "nowhere")
    by_name = {(entry.name, entry.source): entry for entry in entries}
    assert len(by_name) == len(entries)
    assert by_name["iris", "sklearn"].here
    assert not by_name["iris", "folder"].here
    assert by_name["glass", "folder"].command == "advcli data fetch glass"
    # of continuous targets: the classes of the default cut
    assert {name: by_name[name, "folder"].classes for name in TABLE_3} == {name: printed[0] for name, printed in TABLE_3.items()}


@pytest.mark.data("diabetes")
def test_list_and_show_with_the_folder(shared: Path) -> None:
    by_name = {(entry.name, entry.source): entry for entry in list_datasets(shared)}
    assert by_name["glass", "folder"].command == "dataset=glass"
    assert by_name["iris", "folder"].command == "dataset=iris dataset.source=folder"
    lines = show("diabetes", shared)
    assert lines["authors' splits"] == "protocol=author_splits"
    assert lines["classes"].startswith("5: 1 (5), 2 (6)")
    assert lines["used in"] == "fathony2018 Tables 3, 4, 5"
    assert all(isinstance(key, str) and isinstance(value, str) and "\n" not in value for key, value in lines.items())
    assert show(options("iris", source="folder"), shared)["source"] == "folder"


def test_show_what_is_not_here(tmp_path: Path) -> None:
    lines = show("glass", tmp_path)
    assert lines["here"] == "no; get it with `advcli data fetch glass` (3.4 kB)"
    assert lines["rows"] == "214"
    with pytest.raises(DataError, match="did you mean glass"):
        show("glas", tmp_path)


def test_importing_is_light() -> None:
    heavy = "numpy pandas scipy sklearn requests"
    code = f"import sys, advcli.data; sys.exit(' '.join(m for m in '{heavy}'.split() if m in sys.modules) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_loading_never_uses_the_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import socket

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for name in YAML:
        source = options(name)["source"]
        if source in ("sklearn", "synthetic", "louche_toy", "synthetic_hierarchy"):
            load(options(name), tmp_path)
        elif source == "choi_synthetic":
            load({**options(name), "runs": 1, "rows": 300, "features": 20}, tmp_path)
        elif source in ("text", "hierarchical", "sequences"):
            with pytest.raises(DataError, match="is not here"):
                load(options(name), tmp_path)
        elif name not in TEMPLATES:
            with pytest.raises(DataError, match=f"advcli data fetch {name}"):
                load(options(name), tmp_path)
