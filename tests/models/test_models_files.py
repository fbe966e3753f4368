"""Model files: a loaded model is the fitted one, nothing in them is executed, and every fault has an error of one line."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from support.registered import of_rows

from advcli import AdversarialClassifier, OrdinalAdversarialClassifier, SurrogateClassifier
from advcli.core.arrays import dense
from advcli.core.errors import ConfigError, ModelError, ResultsError
from advcli.core.label_graph import LabelGraph
from advcli.evaluation.standardise import Standardiser
from advcli.features import feature_names
from advcli.learners import LinearLearner, hierarchical, learner_class
from advcli.learners.base import registry
from advcli.losses import loss_class, loss_names
from advcli.models import FORMAT_VERSION, Model, read, save
from advcli.models.files import _checksum

RNG = np.random.default_rng(5)
Y = np.repeat([0, 1, 2], 20)
X = RNG.normal(size=(60, 4)) + Y[:, None]
NEW = RNG.normal(size=(25, 4)) + 1.0
TREE = [["r", "a"], ["r", "s"], ["s", "bb"], ["s", "ccc"]]
MATRIX = [[0, 1, 4], [1, 0, 2], [3, 1, 0], [0.7, 0.7, 0.7]]


def fitted(loss: Any = "zero_one", **parameters: Any) -> SurrogateClassifier:
    return SurrogateClassifier(loss, C=0.5, **parameters).fit(X, Y)


def same(one: Any, other: Any, rows: Any) -> None:
    """Both predict alike to the last bit."""
    np.testing.assert_array_equal(one.potentials(rows), other.potentials(rows))
    np.testing.assert_array_equal(dense(one.predict(rows)), dense(other.predict(rows)))
    assert hasattr(one, "predictor_distribution") == hasattr(other, "predictor_distribution")
    if hasattr(one, "predictor_distribution"):
        np.testing.assert_array_equal(one.predictor_distribution(rows), other.predictor_distribution(rows))


@pytest.mark.parametrize(("loss", "number"), [(name, i) for name in loss_names() for i in range(len(loss_class(name).examples(3)))])
def test_every_loss_comes_back(loss: str, number: int, tmp_path: Path) -> None:
    model = fitted(loss, loss_options=loss_class(loss).examples(3)[number] or None)
    save(model, tmp_path / "m")
    back = read(tmp_path / "m")
    same(model, back.estimator, NEW)
    predicted = model.predict(NEW)
    if loss_class(loss).sets:  # of a model the labels of each set
        predicted = np.array([back.labels[code] for code in predicted.indices])
        assert np.concatenate(back.predict(NEW)).tolist() == predicted.tolist()
    else:
        assert back.predict(NEW).tolist() == predicted.tolist()
    assert back.estimator.get_params() == model.get_params()
    assert back.certificate.primal == model.certificate_.primal
    assert back.labels == tuple(model.predictions_.tolist())


@pytest.mark.parametrize("name", sorted(name for name in registry if of_rows(registry.get(name))))
@pytest.mark.parametrize("features", ["linear", "kernel_pca", "nystroem"])
def test_every_method_comes_back(name: str, features: str, tmp_path: Path) -> None:
    extra = {"hierarchy": TREE} if "hierarchy" in learner_class(name).needs({}) else {}
    model = learner_class(name)(features=features, **extra)
    model.fit(X, pd.Series(pd.Categorical(np.array(["a", "bb", "ccc"])[Y], ordered=True)))  # of which some learn the order
    save(model, tmp_path / "m")
    back = read(tmp_path / "m")
    assert type(back.estimator) is type(model)
    np.testing.assert_array_equal(back.estimator.potentials(NEW), model.potentials(NEW))
    assert back.predict(NEW).tolist() == model.predict(NEW).tolist()
    settled = model.features_.settled if model.features_ is not None else {}
    options = settled or model.features_options
    assert back.estimator.get_params() == model.get_params() | {"features_options": options}
    # of the training problem, which a model does not hold
    apart = {
        "features_",
        "certificate_",
        "dual_",
        "trained_targets_",
        "rows_",
        "solution_",
        "lam_",
        "loss_",
        "rejector_certificate_",
        "trainer_",
        "trained_on_",
        "became_",
        "sets_",  # made again from the label graph
        *(("estimator_", "n_iter_") if name == "sklearn" else ()),  # of which a file holds what predicts
    }
    attributes = {each: value for each, value in vars(model).items() if each.endswith("_") and each not in apart}
    assert all(np.array_equal(vars(back.estimator)[each], value) for each, value in attributes.items())
    certificate = getattr(model, "certificate_", None)
    assert (back.certificate is None) == (certificate is None)
    save(back, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes() or certificate is None
    estimated = hasattr(model, "predictor_distribution") or hasattr(model, "predict_proba")
    kinds = ["potential", "probability"] if estimated else ["potential"]
    wanted = ["label", *(f"{kind}_{label}" for kind in kinds for label in ("a", "bb", "ccc"))]
    assert [each for each in back.table(NEW) if each != "abstain"] == wanted


@pytest.mark.parametrize("name", ["hsvm", "nhsvm", "ssvm"])
def test_sets_of_labels_come_back(name: str, tmp_path: Path) -> None:
    sets = np.eye(3, dtype=int)[Y]
    sets[::7, 2] = 1
    model = learner_class(name)(hierarchy={"edges": TREE, "classes": ["a", "bb", "ccc"]}, n_classes=3).fit(X, sets)
    save(model, tmp_path / "m")
    back = read(tmp_path / "m").estimator
    np.testing.assert_array_equal(back.potentials(NEW), model.potentials(NEW))
    np.testing.assert_array_equal(back.predict_codes(NEW).toarray(), model.predict_codes(NEW).toarray())


def test_factored_weights_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advcli.learners.hierarchical.attributes.LISTS", 0)
    rows = sparse.csr_array(X)
    model = learner_class("nhsvm")(hierarchy=LabelGraph.from_edges(TREE)).fit(rows, np.array(["a", "bb", "ccc"])[Y])
    assert isinstance(model.coef_, hierarchical.FactoredWeights)
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(read(tmp_path / "m").estimator.potentials(sparse.csr_array(NEW)), model.potentials(sparse.csr_array(NEW)))


@pytest.mark.parametrize("model", hierarchical.MODELS)
@pytest.mark.parametrize("lists", [False, True])
def test_the_general_face_of_the_hierarchical_models_comes_back(
    model: str, lists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lists:
        monkeypatch.setattr("advcli.learners.hierarchical.attributes.LISTS", 0)
    rows, new = (sparse.csr_array(X), sparse.csr_array(NEW)) if lists else (X, NEW)
    options = hierarchical.HierarchicalClassifier(None if model == "flat" else TREE, model=model).fit(rows, np.array(["a", "bb", "ccc"])[Y])
    save(options, tmp_path / "m")
    back = read(tmp_path / "m")
    assert back.estimator.get_params() == options.get_params()
    np.testing.assert_array_equal(back.estimator.potentials(new), options.potentials(new))
    assert back.predict(new).tolist() == options.predict(new).tolist()


def test_a_confusion_matrix_from_a_file_travels_with_the_model(tmp_path: Path) -> None:
    source = tmp_path / "confusion.csv"
    source.write_text("0.8,0,0\n0.2,1,0.1\n0,0,0.9\n")
    for name in ("uma", "forward"):
        model = learner_class(name)(confusion=str(source)).fit(X, Y)
        save(model, tmp_path / name)
        assert read(tmp_path / name).estimator.get_params()["confusion"] == [[0.8, 0, 0], [0.2, 1, 0.1], [0, 0, 0.9]]


def test_a_basis_is_stored_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On another machine equal eigenvectors may come out turned, and then the weights would not fit them."""
    model = fitted(features="kernel_pca", features_options={"dimensions": 7})
    save(model, tmp_path / "m")
    monkeypatch.setattr("advcli.features.kernels.pca._principal", None)
    same(model, read(tmp_path / "m").estimator, NEW)


class Peculiar(LinearLearner):
    """A method with an attribute that is not plain data."""

    name = "uma"

    def __init__(self, *, features="linear", features_options=None, n_classes=None, random_state=0):
        self.features, self.features_options, self.n_classes, self.random_state = features, features_options, n_classes, random_state

    def learn(self, X, y, weights):
        self.rule_ = object()
        return np.zeros((3, X.shape[1]))


def test_attributes_that_are_no_data_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="rule_ of Peculiar is neither an array nor plain data"):
        save(Peculiar().fit(X, Y), tmp_path / "m")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("features", feature_names())
@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_every_feature_map_comes_back(features: str, stored: Any, tmp_path: Path) -> None:
    train, new = X, NEW
    if features.startswith("precomputed"):
        train, new = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(-1)), np.exp(-0.1 * ((NEW[:, None] - X) ** 2).sum(-1))
    model = SurrogateClassifier("absolute", features=features, C=0.5).fit(stored(train), Y)
    save(model, tmp_path / "m")
    same(model, read(tmp_path / "m").estimator, stored(new))


def test_of_a_kernel_only_support_vectors_are_kept(tmp_path: Path) -> None:
    far = np.concatenate([X + 6.0 * Y[:, None], X + 6.0 * Y[:, None] + 0.01])
    model = SurrogateClassifier("zero_one", features="rbf", C=1.0, features_options={"gamma": 0.05}).fit(far, np.tile(Y, 2))
    save(model, tmp_path / "m")
    with zipfile.ZipFile(tmp_path / "m") as archive:
        rows = np.lib.format.read_array(io.BytesIO(archive.read("arrays/rows.npy")))
    assert 0 < len(rows) == np.count_nonzero(model.theta_.any(axis=1)) < len(far)
    same(model, read(tmp_path / "m").estimator, NEW)


@pytest.mark.parametrize(
    "model",
    [
        AdversarialClassifier(C=2.0),
        AdversarialClassifier("weighted", loss_options={"base": "abstain", "weight": [1.0, 2.0, 0.5], "options": {"alpha": 0.3}}),
        AdversarialClassifier(np.array(MATRIX)),
        AdversarialClassifier("abstain", extra_labels=["unsure"]),
        OrdinalAdversarialClassifier(features="threshold", random_state=None),
    ],
    ids=repr,
)
@pytest.mark.parametrize("labels", [["a", "bb", "a long one"], [10, 20, 30], [1.0, 2.0, 3.0]])
def test_estimators_of_notebooks_come_back(model: SurrogateClassifier, labels: list[Any], tmp_path: Path) -> None:
    if model.counts_steps:
        model.set_params(order=sorted(labels))
    model.fit(X, np.array(labels)[Y])
    if model.extra_labels is not None and not isinstance(labels[0], str):
        model.extra_labels = [-7]
    save(model, tmp_path / "m")
    back = read(tmp_path / "m")
    assert type(back.estimator) is type(model)
    assert back.estimator.classes_.dtype == model.classes_.dtype
    same(model, back.estimator, NEW)
    assert back.predict(NEW).tolist() == model.predict(NEW).tolist()


def test_a_matrix_from_a_file_travels_with_the_model(tmp_path: Path) -> None:
    source = tmp_path / "costs.csv"
    source.write_text(",0,1,2\n" + "".join(f"p{i},{','.join(map(str, row))}\n" for i, row in enumerate(MATRIX)))
    for index, (loss, options) in enumerate(
        [
            ("general", {"file": str(source)}),
            ("weighted", {"base": "general", "weight": 2.0, "options": {"file": str(source)}}),
        ]
    ):
        save(fitted(loss, loss_options=options), tmp_path / f"m{index}")
    expected = fitted("general", loss_options={"file": str(source)}).potentials(NEW)
    source.unlink()
    np.testing.assert_array_equal(read(tmp_path / "m0").estimator.potentials(NEW), expected)
    assert read(tmp_path / "m1").estimator.loss_.n_predictions == 4


def test_the_same_fit_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in "ab":
        save(fitted("abstain"), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    save(read(tmp_path / "a"), tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()


# --------------------------------------------------------------------------------------------------------------- what is refused


def test_any_damage_is_said_or_harmless(tmp_path: Path) -> None:
    model = fitted()
    save(model, tmp_path / "m")
    whole = (tmp_path / "m").read_bytes()
    broken = tmp_path / "broken"
    refused = 0
    for i in range(0, len(whole), 7):
        for content in (whole[:i], whole[:i] + bytes([whole[i] ^ 0x55]) + whole[i + 1 :], whole[i:]):
            if content == whole:
                continue
            broken.write_bytes(content)
            try:
                back = read(broken)
            except ModelError:
                refused += 1
                continue
            # a date or a flag of the archive that nobody reads
            same(model, back.estimator, NEW)
    assert refused > 0.9 * 3 * len(whole) / 7


@pytest.mark.parametrize("content", [b"", b"PK", b"hello", pickle.dumps({"a": 1}), b"\x1f\x8b\x08\x00"])
def test_other_files_are_no_models(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ModelError, match="it is not a model of advcli, or damaged; copy or fit it again"):
        read(tmp_path / "m")


def test_missing_models_and_folders(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no model"):
        read(tmp_path / "m")
    with pytest.raises(ModelError, match="directory"):
        read(tmp_path)
    with pytest.raises(ResultsError, match="choose another file"):
        save(fitted(), tmp_path / "nowhere" / "m")


def rewrite(path: Path, change: Any, compression: int = zipfile.ZIP_STORED) -> None:
    """Change the members of a model file and give it the checksum that fits."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    members["sha256"] = _checksum(members).encode()
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def edited(**changes: Any) -> Any:
    def change(members: dict[str, bytes]) -> None:
        members["model.json"] = json.dumps(json.loads(members["model.json"]) | changes).encode()

    return change


def oversized(members: dict[str, bytes]) -> None:
    """A header that asks for more memory than there is."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**15, 3)})
    members["arrays/theta.npy"] = buffer.getvalue()


def test_a_change_that_the_archive_does_not_see_is_refused(tmp_path: Path) -> None:
    """Every member can be exchanged for another sound one: only the checksum over all of them tells."""
    save(Model(fitted(features="rbf"), (0, 1, 2), (0, 1, 2), Standardiser().fit(X)), tmp_path / "m")
    with zipfile.ZipFile(tmp_path / "m") as archive:
        whole = {name: archive.read(name) for name in archive.namelist()}
    read(tmp_path / "m")
    for name in whole:
        members = dict(whole)
        if name == "model.json":
            members[name] = json.dumps(json.loads(whole[name]), indent=2).encode()
        elif name == "sha256":
            members[name] = b"0" * 64 + b"\n"
        else:
            buffer = io.BytesIO()
            array = np.lib.format.read_array(io.BytesIO(whole[name]))
            np.lib.format.write_array(buffer, ~array if array.dtype == bool else array + 1)
            members[name] = buffer.getvalue()
        with zipfile.ZipFile(tmp_path / "m", "w", zipfile.ZIP_STORED) as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        with pytest.raises(ModelError, match="its checksum does not fit, it is damaged; copy or fit it again"):
            read(tmp_path / "m")


EXECUTED: list[str] = []


class Payload:
    def __reduce__(self) -> Any:
        return EXECUTED.append, ("done",)


def test_nothing_is_executed(tmp_path: Path) -> None:
    """Even a file with a right checksum cannot smuggle a pickle in."""
    save(fitted(), tmp_path / "m")

    def pickled(members: dict[str, bytes]) -> None:
        buffer = io.BytesIO()
        np.save(buffer, np.array([Payload()], dtype=object), allow_pickle=True)
        members["arrays/theta.npy"] = buffer.getvalue()

    rewrite(tmp_path / "m", pickled)
    with pytest.raises(ModelError, match=r"arrays/theta\.npy is neither numbers nor text"):
        read(tmp_path / "m")
    assert EXECUTED == []
    (tmp_path / "p").write_bytes(pickle.dumps(Payload()))
    with pytest.raises(ModelError):
        read(tmp_path / "p")
    assert EXECUTED == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (edited(format_version=FORMAT_VERSION + 1, advcli="9.9"), "made by advcli 9.9; this version reads format 1: update advcli"),
        (edited(format_version=0), "fit it again"),
        (edited(format="other"), "not a model of advcli"),
        (edited(parameters={"loss": "unheard_of"}), "cannot be used here: unknown loss 'unheard_of'"),
        (edited(parameters={"los": "ww"}), "SurrogateClassifier has no option 'los'; did you mean loss"),
        (edited(estimator="unheard_of"), "cannot be used here: unknown loss 'unheard_of'"),
        (edited(estimator="os.system"), "os.system"),
        (oversized, "cannot read the model"),
        (lambda members: members.pop("arrays/theta.npy"), "arrays/theta.npy"),
        (lambda members: members.pop("model.json"), "not a model of advcli"),
    ],
)
def test_files_that_do_not_fit_are_refused(change: Any, said: str, tmp_path: Path) -> None:
    save(fitted(features="rbf"), tmp_path / "m")
    rewrite(tmp_path / "m", change)
    with pytest.raises(ModelError, match=said) as caught:
        read(tmp_path / "m")
    assert len(str(caught.value).splitlines()) == 1
    assert caught.value.exit_code == 2


def test_compressed_archives_are_refused(tmp_path: Path) -> None:
    """A small file could unpack to more than there is memory."""
    save(fitted(), tmp_path / "m")
    rewrite(tmp_path / "m", lambda members: None, zipfile.ZIP_DEFLATED)
    with pytest.raises(ModelError, match="not a model of advcli"):
        read(tmp_path / "m")


def test_only_fitted_estimators_of_this_package_are_saved(tmp_path: Path) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(ConfigError, match="cannot save LogisticRegression"):
        save(LogisticRegression(), tmp_path / "m")  # type: ignore[arg-type]
    with pytest.raises(NotFittedError):
        save(AdversarialClassifier(), tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_a_model_without_columns_is_for_python(tmp_path: Path) -> None:
    from advcli.models import predict_file

    save(fitted("abstain"), tmp_path / "m")
    back = read(tmp_path / "m")
    assert isinstance(back, Model)
    table = back.table(NEW)
    assert list(table)[:4] == ["label", "abstain", "potential_0", "potential_1"]
    assert (table.filter(like="probability_").sum(axis=1) - 1).abs().max() < 1e-9
    with pytest.raises(ModelError, match="without a table's columns"):
        predict_file(back, tmp_path / "new.csv", tmp_path / "out.csv")


@pytest.mark.parametrize("parameter", ["loss", "loss_options", "features", "features_options", "fit_intercept", "n_classes"])
@pytest.mark.parametrize("features", ["linear", "rbf", "kernel_pca"])
def test_a_file_without_what_makes_its_scores_is_refused(features: str, parameter: str, tmp_path: Path) -> None:
    save(fitted("zero_one", features=features), tmp_path / "m")

    def without(members: dict[str, bytes]) -> None:
        document = json.loads(members["model.json"])
        del document["parameters"][parameter]
        members["model.json"] = json.dumps(document).encode()

    rewrite(tmp_path / "m", without)
    with pytest.raises(ModelError, match=f"its parameter {parameter} is missing"):
        read(tmp_path / "m")
