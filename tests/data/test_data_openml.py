"""Data sets of openml.org: scikit-learn's own test responses instead of the service."""

from __future__ import annotations

import gzip
import io
import urllib.error
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.datasets
from sklearn.datasets import _openml

from advcli.core.errors import ConfigError, DataError
from advcli.data import Dataset, load

RESPONSES = files("sklearn.datasets.tests.data.openml")
asked: list[str] = []


class Answer(io.BytesIO):
    def info(self) -> dict[str, str]:
        return {"Content-Encoding": "gzip"}


@pytest.fixture(autouse=True)
def _service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer as openml.org does, by the responses that scikit-learn is tested on."""

    def answer(request: Any, *args: Any, **kwargs: Any) -> Answer:
        url = request.full_url if hasattr(request, "full_url") else request
        asked.append(url)
        words = url.partition("openml.org/")[2].split("/")
        number = words[-1] if words[0] == "api" else None
        prefix = {"features": "jdf", "qualities": "jdq", "data": "jd"}.get(words[-2] if number else "", "")
        wanted = f"api-v1-{prefix}-{number}.json.gz" if number else f"data-v1-dl-{words[3]}.arff.gz"
        for folder in RESPONSES.iterdir():
            if folder.is_dir() and (folder / wanted).is_file():
                return Answer((folder / wanted).read_bytes())
        raise urllib.error.HTTPError(url, 404, "there is nothing", None, None)  # type: ignore[arg-type]

    asked.clear()
    monkeypatch.setattr(_openml, "urlopen", answer)


def read(folder: Path, number: Any, **options: Any) -> Dataset:
    return load({"name": f"openml_{number}", "source": "openml", "id": number, **options}, folder)


def test_iris_is_iris_and_is_fetched_once(tmp_path: Path) -> None:
    data = read(tmp_path, 61)
    # the three numbers of the UCI file that differ from Fisher's
    differing = np.argwhere(sklearn.datasets.load_iris().data != data.X)
    assert differing.tolist() == [[34, 3], [37, 1], [37, 2]]
    assert data.classes == ("Iris-setosa", "Iris-versicolor", "Iris-virginica")
    before = len(asked)
    assert before > 0
    assert read(tmp_path, 61).sha256 == data.sha256
    assert len(asked) == before
    assert {path.parent.parts[len(tmp_path.parts)] for path in tmp_path.rglob("*.gz")} == {"openml"}
    assert gzip.decompress(next(tmp_path.rglob("*.arff*.gz")).read_bytes())


def test_nominal_columns_are_categories_and_gaps_have_their_remedy(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"problems|no value") as caught:
        read(tmp_path, 2)
    assert "dataset.missing=median" in str(caught.value)
    empty = [line.split("'")[1] for line in caught.value.lines if "in any row" in line]  # type: ignore[attr-defined]
    # the classes of the few rows of the response are one: another column in their place
    data = read(tmp_path, 2, missing="indicator", target="shape", drop=[*empty, "class"])
    assert data.classes == ("COIL", "SHEET")
    assert {"steel=A", "steel=R"} <= set(data.feature_names)
    assert any(name.endswith(" is missing") for name in data.feature_names)
    assert np.isfinite(data.X).all()


def test_a_continuous_target_is_cut(tmp_path: Path) -> None:
    data = read(tmp_path, 561, cut="equal_frequency", n_classes=4, max_categories=5)
    assert data.ordered
    assert len([name for name in data.feature_names if name.startswith("vendor=")]) == 5
    assert "vendor=other" in data.feature_names


@pytest.mark.parametrize(
    ("number", "said"),
    [(None, "dataset.id"), (0, "dataset.id"), ("iris", "dataset.id"), (True, "dataset.id"), (7, "cannot fetch"), (292, "cannot be used")],
)
@pytest.mark.filterwarnings("ignore:A network error", "ignore:Version 1 of dataset Australian")
def test_what_cannot_be_had(tmp_path: Path, number: Any, said: str) -> None:
    with pytest.raises((ConfigError, DataError), match=said) as caught:
        read(tmp_path, number)
    assert "\n" not in str(caught.value)
