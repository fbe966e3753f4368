"""Rows and labels of pandas, its nullable and Arrow types, polars and pyarrow mean the same to every kind of learner."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from advcli import AdversarialClassifier, CostSensitiveClassifier, OrdinalClassifier, UMAClassifier, compare
from advcli.core.errors import ConfigError, DataError

RANDOM = np.random.default_rng(0)
X, y = RANDOM.normal(size=(60, 3)), np.array(["a", "b", "c"])[RANDOM.integers(0, 3, 60)]
P, T = pd.DataFrame(X, columns=["u", "v", "w"]), pd.Series(y)
FORMS = {
    "pandas": (P, T),
    "nullable": (P.astype("Float64"), T.astype("string")),
    "arrow types": (P.astype("double[pyarrow]"), T.astype("string[pyarrow]")),
    "category": (P, T.astype("category")),
    "polars": (pl.from_pandas(P), pl.Series(y)),
    "polars category": (pl.from_pandas(P), pl.Series(y, dtype=pl.Categorical)),
    "pyarrow": (pa.Table.from_pandas(P), pa.array(y)),
    "chunked": (pa.Table.from_pandas(P), pa.chunked_array([y[:30], y[30:]])),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "estimator",
    [AdversarialClassifier(), OrdinalClassifier(order=["a", "b", "c"]), CostSensitiveClassifier(), UMAClassifier(confusion=np.eye(3))],
    ids=lambda estimator: type(estimator).__name__,
)
def test_every_form_of_rows_and_labels_gives_the_same_fit(estimator, form):
    scores = estimator.fit(X, y).potentials(X)
    rows, labels = FORMS[form]
    model = estimator.fit(rows, labels)
    assert np.array_equal(model.potentials(rows), scores)
    assert model.feature_names_in_.tolist() == ["u", "v", "w"]
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.score(rows, labels) == model.score(rows, y)


@pytest.mark.parametrize("kind", ["Int64", "int64[pyarrow]", "UInt8"])
def test_whole_numbers_of_nullable_types_stay_whole_numbers(kind):
    model = AdversarialClassifier().fit(P, pd.Series(RANDOM.integers(0, 3, 60)).astype(kind))
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.classes_.dtype.kind in "iu"


GAPS = {
    "string": T.astype("string").where(np.arange(60) != 3),
    "Int64": pd.Series(np.arange(60) % 3).astype("Int64").where(np.arange(60) != 3),
    "object": T.astype(object).where(np.arange(60) != 3, None),
    "polars": pl.Series([None if row == 3 else label for row, label in enumerate(y)]),
    "pyarrow": pa.array([None if row == 3 else label for row, label in enumerate(y)]),
}


@pytest.mark.parametrize("kind", GAPS)
def test_a_row_without_a_label_is_refused_by_one_line(kind):
    with pytest.raises(DataError, match=r"^y has no label in row 4; give it one or remove the row$"):
        AdversarialClassifier().fit(P, GAPS[kind])


def test_compare_takes_scikit_learns_word_for_processes(tmp_path, monkeypatch):
    seen = []

    def sweep(*_, workers, **__):
        seen.append(workers)
        raise ConfigError("enough")

    monkeypatch.setattr("advcli.reports.compare.sweep", sweep)
    for frame in (P.assign(label=y), pl.from_pandas(P.assign(label=y)), pa.Table.from_pandas(P.assign(label=y))):
        with pytest.raises(ConfigError, match="enough"):
            compare(frame, "label", folder=tmp_path / "found", n_jobs=3)
    assert seen == [3, 3, 3]
    with pytest.raises(ConfigError, match="workers and n_jobs are the same number"):
        compare(P.assign(label=y), "label", workers=2, n_jobs=2)
