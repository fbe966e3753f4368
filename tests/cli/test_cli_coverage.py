"""advcli coverage: risk over coverage of a saved model on labelled rows, its confusions, thresholds with a guarantee."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import image

from advcli.abstention import guarantee, risk_coverage
from advcli.cli import main
from advcli.models import read

NAMES = np.array(["red", "rose", "white"])


def rows(path: Path, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    y = random.integers(3, size=n)
    X = np.round(random.normal(size=(n, 2)) + 1.5 * np.array([[0, 0], [0, 2], [2, 0]])[y], 3)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["kind", "hue", "sugar"], *([NAMES[label], *row] for label, row in zip(y, X.tolist(), strict=True))])
    return X, y


@pytest.mark.parametrize("loss", ["abstain_ova", "abstain", "cs"])
def test_the_files_say_what_the_model_does(
    loss: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows(Path("train.csv"), 90, 0)
    X, y = rows(Path("held.csv"), 300, 1)
    assert main(["fit", "dataset=csv", "dataset.path=train.csv", "dataset.target=kind", f"loss={loss}", "hyper.C=1", "out=m.model"]) == 0
    capsys.readouterr()
    assert main(["coverage", "model=m.model", "input=held.csv", "out=found"]) == 0
    said = capsys.readouterr().out
    model = read("m.model")
    P = model.estimator.potentials(model.features(X))
    wrong = P.argmax(axis=1) != y
    margin = P.max(axis=1) if loss == "abstain_ova" else np.sort(P, axis=1)[:, -1] - np.sort(P, axis=1)[:, -2]
    curve = pd.read_csv("found/curve.csv")
    expected = risk_coverage(margin, wrong)
    np.testing.assert_allclose(curve["coverage"], expected.coverage)
    np.testing.assert_allclose(curve["risk"], expected.risk)
    np.testing.assert_allclose(curve["threshold"], expected.threshold, atol=1e-9)
    assert f"AURC {expected.aurc:.4g}, E-AURC {expected.excess:.4g}" in said
    confusion = pd.read_csv("found/confusion.csv", index_col="class")
    assert list(confusion.columns) == [*NAMES, *(["abstain"] if loss != "cs" else [])]
    predicted = model.predict(X)
    for label in NAMES:
        for column in confusion.columns:
            assert confusion.loc[label, column] == ((NAMES[y] == label) & (predicted == column)).sum()
    table = pd.read_csv("found/guarantees.csv")
    assert table["epsilon"].tolist() == [0.01, 0.02, 0.05, 0.1, 0.2]
    for each in table.itertuples():
        found = guarantee(margin, wrong, each.epsilon, 0.1)
        assert (found.accepted, found.wrong, found.rows) == (each.accepted, each.wrong, each.rows)
        assert str(found) in said
    assert Path("found/curve.svg").read_text().startswith("<?xml")
    assert Path("found/curve.pdf").read_bytes().startswith(b"%PDF")
    picture = image.imread("found/curve.png")
    assert 1000 <= picture.shape[1] <= 1400
    np.testing.assert_array_equal(picture[0, 0, :3], 1.0)  # white ground
    assert (picture[:, :, :3].min(axis=2) < 0.5).mean() > 0.002  # and something on it


def test_bad_input_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    rows(Path("train.csv"), 60, 0)
    assert main(["fit", "dataset=csv", "dataset.path=train.csv", "dataset.target=kind", "loss=abstain_cs", "hyper.C=1", "out=m.model"]) == 0
    Path("other.csv").write_text(Path("train.csv").read_text().replace("rose", "rosé", 1))
    Path("unlabelled.csv").write_text(Path("train.csv").read_text().replace("kind", "sort", 1))
    few = Path("train.csv").read_text().splitlines()[:12]
    Path("few.csv").write_text("\n".join(few) + "\n")
    cases = [
        (["input=train.csv", "out=found"], "needs model=FILE"),
        (["model=m.model", "out=found"], "needs input=FILE"),
        (["model=m.model", "input=train.csv"], "needs out=FOLDER"),
        (["model=m.model", "input=other.csv", "out=found"], "'rosé' of row "),
        (["model=m.model", "input=unlabelled.csv", "out=found"], "has no column kind of labels"),
        (["model=m.model", "input=train.csv", "out=train.csv"], "out=train.csv is a file"),
        (["model=m.model", "input=none.csv", "out=found"], "none.csv"),
    ]
    for words, said in cases:
        capsys.readouterr()
        assert main(["coverage", *words]) == 2
        err = capsys.readouterr().err.strip()
        assert said in err
        assert len(err.splitlines()) == 1
        assert not Path("found").exists()
    assert main(["coverage", "model=m.model", "input=few.csv", "out=found"]) == 0
    assert "11 rows are too few for a threshold with a guarantee" in capsys.readouterr().out
