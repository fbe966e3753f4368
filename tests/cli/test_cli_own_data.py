"""A person's file with gaps and categories: fitted, shown, and applied to rows that it was not fitted on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from advcli.cli import main
from advcli.models import predict_file, read

pytestmark = pytest.mark.usefixtures("elsewhere")

FIT = ["dataset=csv", "dataset.path=train.csv", "dataset.target=label", "dataset.categorical=auto", "hyper.C=1", "solver.tol=1e-4"]


def frame(gaps: bool, n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    y = np.arange(n) % 3
    table = pd.DataFrame(
        {
            "size": np.round(rng.normal(size=n) + y, 3),
            "age": rng.integers(20, 60, n).astype(float),
            "colour": np.array(["red", "green", "blue"], dtype=object)[(y + (rng.random(n) < 0.2)) % 3],
            "town": np.array([f"t{at % 9}" if at % 3 else "t0" for at in range(n)], dtype=object),
            "label": np.array(["a", "b", "c"])[y],
        }
    )
    if gaps:
        for at, name in enumerate(("size", "age", "colour", "town")):
            table.loc[at::11, name] = np.nan
    return table


def fitted(missing: str, *words: str) -> None:
    frame(missing != "refuse").to_csv("train.csv", index=False)
    assert main(["fit", *FIT, f"dataset.missing={missing}", "dataset.max_categories=4", "out=m.model", *words]) == 0


@pytest.mark.parametrize("missing", ["refuse", "mean", "median", "most_frequent", "indicator"])
def test_a_model_takes_its_own_training_file_and_is_the_same_after_reading(missing: str) -> None:
    fitted(missing)
    model = read("m.model")
    assert model.encoding is not None
    assert "town=other" in model.encoding.feature_names
    assert ("size is missing" in model.encoding.feature_names) == (missing == "indicator")
    assert main(["predict", "model=m.model", "input=train.csv", "out=p.csv"]) == 0
    found = pd.read_csv("p.csv")
    # by hand: the learned encoding, the standardisation, the scores
    from advcli.data import load as load_data

    options = {"name": "csv", "source": "csv", "path": "train.csv", "target": "label", "categorical": "auto", "missing": missing}
    X = load_data({**options, "max_categories": 4}, Path()).X
    np.testing.assert_allclose(found["potential_a"], model.estimator.potentials(model.features(X))[:, 0], atol=1e-12)
    assert (found["label"] == frame(False)["label"]).mean() > 0.5


def test_a_model_of_gaps_takes_gaps_in_columns_that_had_none() -> None:
    table = frame(True)
    table["age"] = 30.0 + np.arange(60) % 7
    table.to_csv("train.csv", index=False)
    assert main(["fit", *FIT, "dataset.missing=median", "out=m.model"]) == 0
    one, other = table.iloc[:3].copy(), table.iloc[:3].copy()
    one["age"] = np.nan
    other["age"] = table["age"].median()
    for name, rows in (("one", one), ("other", other)):
        rows.to_csv(f"{name}.csv", index=False)
        predict_file(read("m.model"), Path(f"{name}.csv"), Path(f"{name}_p.csv"))
    assert Path("one_p.csv").read_text() == Path("other_p.csv").read_text()


def new_rows() -> pd.DataFrame:
    """Two good rows; a category that nobody saw, a gap, text in a column of numbers, and two faults in one row."""
    table = frame(False).drop(columns="label").iloc[:6].astype(object)
    table.iloc[1, 2] = "pink"
    table.iloc[2, 0] = ""
    table.iloc[3, 1] = "old"
    table.iloc[5, 0], table.iloc[5, 2] = "", "violet"
    return table


def test_refused_rows_go_to_a_file_with_their_reasons() -> None:
    fitted("refuse")
    new_rows().to_csv("new.csv", index=False)
    expected = {2: "colour", 3: "'size'", 4: "text", 6: "colour"}
    for rows in (1, 2, 100):
        words = ["predict", "model=m.model", "input=new.csv", "out=p.csv", "predict.rejected=bad.csv", f"chunk_rows={rows}"]
        assert main(words) == 0
        assert pd.read_csv("p.csv")["row"].tolist() == [1, 5]
        bad = pd.read_csv("bad.csv")
        assert bad["row"].tolist() == list(expected)
        for reason, word in zip(bad["reasons"], expected.values(), strict=True):
            assert word in reason
        assert bad["reasons"].iloc[-1].count(";") == 1
        assert bad["colour"].iloc[0] == "pink"


def test_ignored_faults_count_as_nothing_known(capfd: pytest.CaptureFixture[str]) -> None:
    fitted("refuse")
    table = new_rows().drop(index=3).assign(extra=1)
    table.to_csv("new.csv", index=False)
    words = ["predict", "model=m.model", "input=new.csv", "out=p.csv"]
    for asked, said in ((0, "predict.extra=ignore"), (1, "problems"), (2, "no value")):
        given = ["predict.extra=ignore", "predict.unseen=ignore", "predict.gaps=ignore"][:asked]
        assert main([*words, *given]) == 2
        assert said in capfd.readouterr().err
    assert main([*words, "predict.extra=ignore", "predict.unseen=ignore", "predict.gaps=ignore"]) == 0
    assert "not used by the model: extra" in capfd.readouterr().err
    model = read("m.model")
    assert model.standardiser is not None
    columns = list(model.encoding.feature_names)  # type: ignore[union-attr]
    by_hand = np.zeros((1, len(columns)))
    row = table.iloc[4]
    by_hand[0, columns.index("size")] = frame(False)["size"].mean()
    by_hand[0, columns.index("age")] = row["age"]
    by_hand[0, columns.index(f"town={row['town']}" if f"town={row['town']}" in columns else "town=other")] = 1.0
    expected: Any = model.table(by_hand)
    np.testing.assert_allclose(pd.read_csv("p.csv").iloc[4, 1:].astype(float), expected.iloc[0, 1:].astype(float), atol=1e-9)


def test_a_model_says_how_it_treats_gaps_and_categories(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    fitted("median")
    first = Path("m.model").read_bytes()
    fitted("median")
    assert Path("m.model").read_bytes() == first
    capfd.readouterr()
    assert main(["model", "show", "m.model"]) == 0
    out = capfd.readouterr().out
    sizes = pd.read_csv("train.csv")["size"]
    assert f"size {sizes.median():.6g}" in out
    assert "colour by " in out
    assert "town (" in out
    assert "1970-01-02 00:00:00 UTC" in out


def test_models_with_parts_that_cannot_be_are_refused() -> None:
    import json

    from advcli.core.errors import ModelError
    from advcli.models.restored import _restored_encoding

    fitted("indicator")
    import zipfile

    with zipfile.ZipFile("m.model") as archive:
        document = json.loads(archive.read("model.json"))
    encoding, d = document["encoding"], document["n_features"]
    assert _restored_encoding(encoding, d).feature_names == read("m.model").encoding.feature_names  # type: ignore[union-attr]
    town = next(at for at, column in enumerate(encoding["columns"]) if column["name"] == "town")
    size = next(at for at, column in enumerate(encoding["columns"]) if column["name"] == "size")
    wrong = [
        (town, {"own": [99]}),
        (town, {"own": [1, 0]}),
        (town, {"own": "all"}),
        (town, {"fill": 0.5}),
        (town, {"fill": True}),
        (town, {"indicator": True}),
        (size, {"own": [0]}),
        (size, {"other": True}),
        (size, {"fill": 1e300}),
        (size, {"fill": None, "indicator": True}),
        (size, {"indicator": 1}),
    ]
    for at, change in wrong:
        columns = [dict(column) for column in encoding["columns"]]
        columns[at] |= change
        with pytest.raises(ModelError):
            _restored_encoding({**encoding, "columns": columns}, d)
    with pytest.raises(ModelError, match="fills cells by"):
        _restored_encoding({**encoding, "missing": "zero"}, d)


def test_proofs_of_encoded_rows_are_proved_without_the_recipe(capfd: pytest.CaptureFixture[str]) -> None:
    frame(True).to_csv("train.csv", index=False)
    words = [*FIT, "dataset.missing=indicator", "dataset.max_categories=4", "protocol.n_splits=2", "record.proofs=true", "name=kept"]
    assert main(words) == 0
    capfd.readouterr()
    assert main(["verify", "results=results/kept"]) == 0
    assert "2 proved, 0 refuted, 0 cannot" in capfd.readouterr().out


@pytest.mark.parametrize(
    "word", ["dataset.missing=zero", "dataset.max_categories=1", "dataset.max_categories=few", "dataset.keep=[nobody]"]
)
def test_options_that_cannot_be(word: str, capfd: pytest.CaptureFixture[str]) -> None:
    frame(False).to_csv("train.csv", index=False)
    assert main([*FIT, word, "name=made"]) == 2
    err = capfd.readouterr().err
    assert word.partition("=")[0] in err
    assert err.count("\n") == 1
