"""Votes, probabilities, annotators and cost matrices in files: every method is judged by the expected cost, and proved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from advcli import AdversarialClassifier, data, dawid_skene, models
from advcli.cli import main
from advcli.core.errors import AdvcliError
from advcli.data.labels.soft import shares

NAMES = np.array(["setosa", "versicolor", "virginica"])
COST = pd.DataFrame([[0.0, 12.5, 40.0], [3.0, 0.0, 8.0], [3.0, 5.0, 0.0]], index=NAMES, columns=NAMES)

pytestmark = pytest.mark.usefixtures("elsewhere")


@pytest.fixture(autouse=True)
def files(elsewhere: object) -> dict[str, pd.DataFrame]:
    """Write 90 irises as labels, votes of five people, their labels, and probabilities; and a cost matrix in another order."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    X, y = X.iloc[::2].iloc[:75].reset_index(drop=True), y.to_numpy()[::2][:75]
    random = np.random.default_rng(0)
    said = np.where(random.random((len(y), 5)) < [0.95, 0.9, 0.8, 0.7, 0.4], y[:, None], random.integers(0, 3, (len(y), 5)))
    votes = pd.DataFrame(np.stack([(said == c).sum(axis=1) for c in range(3)], axis=1), columns=NAMES)
    by = pd.DataFrame(NAMES[said], columns=list("abcde")).add_prefix("by_")
    tables = {
        "labels": X.assign(label=NAMES[y]),
        "votes": pd.concat([X, votes.add_prefix("vote_")], axis=1),
        "shares": pd.concat([X, (votes / 5).add_prefix("p_")], axis=1),
        "annotators": pd.concat([X, by.mask(random.random(said.shape) < 0.1)], axis=1),
    }
    for name, table in tables.items():
        table.to_csv(f"{name}.csv", index=False)
    COST.loc[NAMES[[2, 0, 1]], NAMES[[1, 0, 2]]].to_csv("costs.csv")
    return tables


def load(name: str, **options: object) -> data.Dataset:
    return data.load({"name": name, "source": "csv", "path": f"{name}.csv", **options}, Path())


def rows(name: str) -> pd.DataFrame:
    return pd.read_csv(f"results/{name}/runs.csv")


def test_votes_and_probabilities_are_distributions_with_expected_costs(files: dict[str, pd.DataFrame]) -> None:
    votes, probabilities = load("votes", target=["vote_*"]), load("shares", target=["p_*"])
    P, _ = shares(files["votes"].iloc[:, 4:])
    assert votes.classes == tuple(NAMES)
    assert np.array_equal(votes.soft, P)
    assert probabilities.soft == pytest.approx(P, abs=1e-15)
    assert votes.costs == pytest.approx(1.0 - P)
    assert np.array_equal(votes.y, P.argmax(axis=1))
    assert votes.X.shape[1] == 4
    assert "votes for 3 classes in columns 'vote_setosa' to 'vote_virginica' are divided by their sums [ADV120]" in votes.notes
    named = load(
        "votes", target=["vote_virginica", "vote_setosa", "vote_versicolor"], order=["vote_setosa", "vote_versicolor", "vote_virginica"]
    )
    assert (named.ordered, named.classes) == (True, ("vote_setosa", "vote_versicolor", "vote_virginica"))
    assert np.array_equal(named.soft, P)
    priced = load("votes", target=["vote_*"], cost_matrix="costs.csv")
    assert priced.costs == pytest.approx(P @ COST.to_numpy().T)


def test_annotators_are_dawid_and_skenes(files: dict[str, pd.DataFrame]) -> None:
    dataset = load("annotators", annotators=["by_*"])
    crowd = dawid_skene(files["annotators"].filter(like="by_").fillna(""))
    assert np.array_equal(dataset.soft, crowd.probabilities.to_numpy())
    assert dataset.X.shape[1] == 4
    assert any("estimated shares of right labels from" in note for note in dataset.notes)


def test_labels_with_a_cost_matrix_are_rows_with_costs() -> None:
    dataset, plain = load("labels", target="label", cost_matrix="costs.csv", currency="EUR"), load("labels", target="label")
    assert np.array_equal(dataset.costs, COST.to_numpy()[:, dataset.y].T)
    assert np.array_equal(dataset.y, plain.y)
    assert plain.costs is None
    assert dataset.notes[-1] == "predictions cost in EUR what costs.csv says, between 0 and 40 [ADV120]"


def test_every_method_runs_on_votes_and_is_proved_with_its_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["dataset=csv", "dataset.path=votes.csv", "dataset.target=[vote_*]", "record.proofs=true", "name=votes"]
    words += [
        "dataset.order=[setosa,versicolor,virginica]",
        "protocol.metrics=[savings,error]",
        "workers=1",
        "hyper.C=1",
        "protocol.n_splits=2",
    ]
    losses = "loss=zero_one,csosr,adversarial_costs,ova"
    assert main(["-m", *words, losses]) == 0
    assert "cost: mean" in capsys.readouterr().out
    found = rows("votes")
    assert set(found["status"]) == {"ok"}
    assert {"cost", "savings", "error"} <= set(found["metric"])
    assert (found["n_train"] + found["n_test"] == 75).all()
    main(["verify", "results=results/votes"])
    said = capsys.readouterr().out
    assert "8 proved, 0 refuted, 0 cannot; of the proved 8 with all their metrics" in said


def test_a_search_and_a_model_on_probabilities_have_the_estimators_objective(files: dict[str, pd.DataFrame]) -> None:
    words = ["dataset=csv", "dataset.path=shares.csv", "dataset.target=[p_*]"]
    searched = ["protocol.stage1.regularisation=[0.125,1]", "protocol.folds=2", "protocol.n_splits=1", "name=searched"]
    assert main([*words, "loss=zero_one", *searched]) == 0
    assert set(pd.read_csv("results/searched/search.csv")["metric"]) == {"cost"}
    assert main(["fit", *words, "loss=zero_one", "hyper.C=0.5", "protocol.standardise=none", "solver.tol=1e-6", "out=m.model"]) == 0
    table = files["shares"]
    estimator = AdversarialClassifier("zero_one", C=0.5, tol=1e-6).fit(table.iloc[:, :4].to_numpy(), table.iloc[:, 4:].to_numpy())
    fitted = models.read("m.model").estimator
    assert fitted.certificate_.primal == pytest.approx(estimator.certificate_.primal, rel=2e-6)
    assert fitted.certificate_.dual <= estimator.certificate_.primal


def test_savings_in_a_currency_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["dataset=csv", "dataset.path=labels.csv", "dataset.target=label", "dataset.cost_matrix=costs.csv", "dataset.currency=EUR"]
    words += ["protocol.metrics=[savings]", "workers=1", "hyper.C=1", "protocol.n_splits=2", "name=eur"]
    assert main(["-m", *words, "loss=zero_one,csovo,dummy"]) == 0
    assert "cost in EUR: mean" in capsys.readouterr().out
    assert "Results: cost in EUR" in Path("results/eur/report.html").read_text()
    found = rows("eur").pivot_table(index=["loss", "split"], columns="metric", values="value")
    dataset = load("labels", target="label", cost_matrix="costs.csv")
    for _, row in found.iterrows():  # the same constant prediction for all methods of a split
        constant = row["cost"] / (1.0 - row["savings"]) if row["savings"] != 1.0 else np.nan
        assert np.isnan(constant) or constant <= dataset.costs.mean(axis=0).max()
    assert (found.loc["csovo", "savings"] >= found.loc["dummy", "savings"]).all()


@pytest.mark.parametrize(
    ("file", "options", "said"),
    [
        ("votes", {"target": ["vot_*"]}, "votes.csv has no column 'vot_*', which dataset.target names; did you mean vote_setosa?"),
        ("votes", {"target": ["vote_setosa"]}, "means one column, 'vote_setosa'; give one for each class"),
        ("votes", {"target": ["p_setosa", "vote_setosa"]}, "has no column 'p_setosa', which dataset.target names"),
        ("votes", {"target": ["vote_*"], "annotators": ["vote_*"]}, "are both where the labels come from: give one of them"),
        ("votes", {"target": ["vote_*"], "order": ["setosa", "virginica"]}, "must list each class once: setosa, versicolor, virginica"),
        ("votes", {"target": ["vote_*"], "cut": "equal_width"}, "dataset.cut is about one label a row; with dataset.target=[COLUMNS]"),
        ("votes", {"target": ["vote_*"], "cost_matrix": "nothing.csv"}, "nothing.csv cannot be read (No such file or directory)"),
        ("votes", {"target": ["vote_*"], "cost_matrix": "other.csv"}, "other.csv has no column for class 'virginica'"),
        ("votes", {"target": ["vote_*"], "cost_matrix": "below.csv"}, "row 1, column 2, is -1; costs must be at least 0"),
        ("votes", {"target": ["vote_*"], "cost_matrix": "more.csv"}, "more.csv has a row 'ask', which is no class"),
        ("votes", {"target": ["vote_*"], "currency": "EUR"}, "dataset.currency=EUR needs costs"),
        ("votes", {"target": ["vote_*"], "costs": ["vote_setosa", "vote_virginica"]}, "dataset.costs is about one label a row"),
        ("off", {"target": ["p_*"]}, "off.csv, row 3 (line 4), sums to 1.2, and probabilities sum to 1"),
        ("labels", {"target": ["p_*"]}, "labels.csv has no column 'p_*'"),
        ("text", {"target": ["p_*"]}, "column 'p_setosa' holds text ('x' in row 2 (line 3))"),
        ("none", {"annotators": ["by_*"]}, "none.csv: no annotator labels row 5 (line 6); remove the row"),
        (
            "annotators",
            {"annotators": ["by_a"], "drop": ["by_b", "by_c", "by_d", "by_e"]},
            "dataset.annotators means one column, 'by_a'; give one for each annotator",
        ),
    ],
)
def test_bad_input_is_refused_by_one_line(files: dict[str, pd.DataFrame], file: str, options: dict[str, object], said: str) -> None:
    COST.rename(columns={"virginica": "other"}, index={"virginica": "other"}).to_csv("other.csv")
    COST.replace(12.5, -1.0).to_csv("below.csv")
    pd.concat([COST, pd.DataFrame(1.0, index=["ask"], columns=NAMES)]).to_csv("more.csv")
    off, text, none = files["shares"].copy(), files["shares"].astype(object), files["annotators"].copy()
    off.loc[2, "p_setosa"] += 0.2
    text.loc[1, "p_setosa"] = "x"
    none.loc[4, [f"by_{who}" for who in "abcde"]] = None
    for name, table in {"off": off, "text": text, "none": none}.items():
        table.to_csv(f"{name}.csv", index=False)
    with pytest.raises(AdvcliError) as raised:
        load(file, **options)
    assert said in str(raised.value)
    assert len(raised.value.lines) == 1


def test_a_method_without_weights_is_refused_before_any_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset=csv", "dataset.path=votes.csv", "dataset.target=[vote_*]", "loss=nearest_neighbours"]) == 2
    assert "distributions over the classes, which it does not take" in capsys.readouterr().err
