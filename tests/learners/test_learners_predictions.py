"""What is predicted where the rows of a matrix are not the classes, and what is claimed of the cost of the very predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from advcli import AbstainingClassifier, AdversarialClassifier, AdversarialCostClassifier, CostSensitiveClassifier
from advcli.core.errors import ConfigError
from advcli.losses import AdversarialLoss, loss_class, loss_names
from advcli.models import load, read, save

ADVERSARIAL = [name for name in loss_names() if issubclass(loss_class(name), AdversarialLoss) and loss_class(name).name == name]
KINDS = np.array(["ant", "bee", "cat"])
PAIRS = ["ant or bee", "ant or cat", "bee or cat"]
PRICES = pd.DataFrame([[0.2, 0.2, 1.0], [0.2, 1.0, 0.2], [1.0, 0.2, 0.2]], index=PAIRS, columns=KINDS)


@pytest.fixture(scope="module")
def drawn() -> tuple[Any, Any]:
    random = np.random.default_rng(5)
    X = random.normal(size=(60, 2))
    return X, np.digitize(X[:, 0] + 0.6 * random.normal(size=60), [-0.5, 0.5])


def written(frame: pd.DataFrame, path: Path) -> str:
    frame.to_csv(path, index_label="prediction")
    return str(path)


# ---- the rows are the classes, or predictions of their own --------------------------------------------------------------
@pytest.mark.parametrize("form", ["frame", "file", "option"])
@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("name", ["general", "convex", "weighted"])
def test_rows_that_are_no_classes_are_predicted_by_the_predictor(name, form, extra, drawn, tmp_path: Path) -> None:
    X, codes = drawn
    table = pd.DataFrame([[0.0, 1.0, 3.0], [1.0, 0.5, 1.0], [3.0, 1.0, 0.0]], index=["low", "middle", "high"], columns=KINDS)
    table = pd.concat([table, pd.DataFrame([[6.0, 2.0, 0.0]], index=["higher"], columns=KINDS)]) if extra else table
    order = list(KINDS) if name == "convex" else None
    if form == "frame":
        if name != "general":
            return  # a frame is the parameter loss itself
        fitted = AdversarialClassifier(table, order=order)
    else:
        given: dict[str, Any] = {"file": written(table[["cat", "ant", "bee"]], tmp_path / "rows.csv")}
        if form == "option":
            given = {"matrix": table.to_numpy().tolist(), "predictions": list(table.index)}
        given = {"base": "general", "weight": 2.0, "options": given} if name == "weighted" else given
        fitted = AdversarialClassifier(name, loss_options=given, order=order)
    fitted.fit(X, KINDS[codes])
    found = fitted.predict_codes(X)
    assert list(fitted.predictions_) == list(table.index)
    assert np.array_equal(found, fitted.predictor_distribution(X).argmax(axis=1))
    np.testing.assert_allclose(fitted.cost_matrix_, table.to_numpy() * (2.0 if name == "weighted" else 1.0))
    assert fitted.probabilities(X) is None
    with pytest.raises(ConfigError, match="rule=potentials needs a prediction for each of the 3 classes"):
        fitted.predict(X, rule="potentials")
    save(fitted, tmp_path / "m.model")
    for back in (load(tmp_path / "m.model"), read(tmp_path / "m.model").estimator):
        assert list(back.predictions_) == list(table.index)
        assert np.array_equal(back.predict(X), fitted.predict(X))


def test_a_square_matrix_that_is_named_by_the_classes_is_one_of_classes(drawn, tmp_path: Path) -> None:
    X, codes = drawn
    costs = pd.DataFrame([[0, 1, 4], [2, 0, 1], [3, 1, 0]], index=KINDS, columns=KINDS)
    plain = AdversarialClassifier(costs.to_numpy()).fit(X, KINDS[codes])
    shuffled = costs.loc[["cat", "ant", "bee"], ["bee", "cat", "ant"]]
    path = written(shuffled, tmp_path / "classes.csv")
    for fitted in (AdversarialClassifier(shuffled), AdversarialClassifier("general", loss_options={"file": path})):
        assert np.array_equal(fitted.fit(X, KINDS[codes]).potentials(X), plain.potentials(X))
        assert fitted.rule_ == "potentials"
        assert list(fitted.predictions_) == list(KINDS)
    # also where the labels are codes, and the names are theirs
    coded = written(shuffled.set_axis([2, 0, 1]).set_axis([1, 2, 0], axis=1), tmp_path / "codes.csv")
    fitted = AdversarialClassifier("general", loss_options={"file": coded}, n_classes=3).fit(X, codes)
    assert np.array_equal(fitted.potentials(X), plain.potentials(X))
    with pytest.raises(ConfigError, match="no column for class '0'"):
        AdversarialClassifier("general", loss_options={"file": path}, n_classes=3).fit(X, codes)


def test_columns_of_a_convex_file_are_found_by_name(drawn, tmp_path: Path) -> None:
    X, codes = drawn
    costs = pd.DataFrame([[0, 1, 4], [1, 0, 1], [4, 1, 0]], index=KINDS, columns=KINDS)
    path = written(costs[["cat", "bee", "ant"]], tmp_path / "costs.csv")
    plain = AdversarialClassifier("convex", loss_options={"matrix": costs.to_numpy().tolist()}, order=list(KINDS)).fit(X, KINDS[codes])
    fitted = AdversarialClassifier("convex", loss_options={"file": path}, order=list(KINDS)).fit(X, KINDS[codes])
    assert np.array_equal(fitted.potentials(X), plain.potentials(X))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (PRICES.rename(index={"ant or bee": "ant"}), "no row for class 'bee'"),
        (PRICES.set_axis([0, 1, 2], axis=1), "names its rows and not its columns"),
    ],
)
def test_names_that_match_in_part_are_refused(table, said, drawn) -> None:
    X, codes = drawn
    with pytest.raises(ConfigError, match=said):
        AdversarialClassifier(table).fit(X, KINDS[codes])


def test_rows_of_only_some_classes_are_refused_in_a_file_too(drawn, tmp_path: Path) -> None:
    X, codes = drawn
    path = written(PRICES.rename(index={"ant or bee": "ant"}), tmp_path / "some.csv")
    with pytest.raises(ConfigError, match="no row for class 'bee'"):
        AdversarialClassifier("general", loss_options={"file": path}).fit(X, KINDS[codes])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["a", "b"], "must name the 3 rows"),
        (["a", "b", "b"], "different names"),
        ("abc", "must name the 3 rows"),
        (["ant", "b", "c"], "no row for class 'bee'"),
    ],
)
def test_names_of_predictions_are_checked(given, said, drawn) -> None:
    X, codes = drawn
    with pytest.raises(ConfigError, match=said):
        AdversarialClassifier(PRICES.to_numpy(), loss_options={"predictions": given}).fit(X, KINDS[codes])


def test_predictions_of_fewer_rows_than_classes_are_not_called_like_classes(drawn) -> None:
    X, codes = drawn
    fitted = AdversarialClassifier([[0, 1, 1], [1, 0.5, 0]]).fit(X, codes)
    assert list(fitted.predictions_) == ["prediction 0", "prediction 1"]
    named = AdversarialClassifier([[0, 1, 1], [1, 0.5, 0]], extra_labels=["yes", "no"]).fit(X, codes)
    assert list(named.predictions_) == ["yes", "no"]


@pytest.mark.parametrize("kind", [CostSensitiveClassifier, AdversarialCostClassifier])
def test_a_learner_of_classes_refuses_rows_that_are_none(kind, drawn) -> None:
    X, codes = drawn
    with pytest.raises(ConfigError, match="row 'ant or bee', which is no class"):
        kind(cost=PRICES).fit(X, KINDS[codes])


# ---- what is claimed ------------------------------------------------------------------------------------------------------
def options_of(name: str) -> list[dict[str, Any]]:
    return loss_class(name).examples(3)


@pytest.mark.parametrize(("name", "number"), [(name, number) for name in ADVERSARIAL for number in range(len(options_of(name)))])
@pytest.mark.parametrize("rule", [None, "potentials", "predictor", "median", "mean"])
def test_the_very_predictions_cost_at_most_what_is_claimed(name, number, rule, drawn) -> None:
    """On the labels of the fit, which are one of the distributions that the guarantee covers, and for no rule less than its own bound."""
    X, codes = drawn
    weight = np.random.default_rng(number).choice([0.2, 1.0, 4.0], size=len(codes))
    for C in (0.01, 10.0):
        fitted = AdversarialClassifier(name, C=C, loss_options=options_of(name)[number], rule=rule, n_classes=3, tol=1e-2).fit(
            X, codes, weight
        )
        try:
            predicted = fitted.predict_codes(X)
        except ConfigError:  # a rule that the loss does not have
            return
        claimed = fitted.worst_case(X, codes, weight)
        matrix: Any = fitted.loss_.unweighted.matrix
        scale = weight if fitted.loss_.example_weights else np.ones(len(codes))
        if name == "weighted":
            scale = scale * np.broadcast_to(fitted.loss_.weight, 3)[codes]
        cost = np.average(scale * matrix[predicted, codes], weights=None if fitted.loss_.example_weights else weight)
        assert claimed is not None
        assert claimed.seen == pytest.approx(cost, abs=1e-12)
        assert cost <= claimed.predicted + 1e-9
        assert claimed.mixed == fitted.certificate_.game_value
        assert claimed.mixed <= claimed.predicted + 1e-9  # no rule is better than the best strategy
        assert fitted.rule_ in str(claimed)


def test_the_claim_holds_against_every_distribution_that_the_moments_allow(drawn) -> None:
    """The adversary at its best against the fixed predictions, by sequential quadratic programs over the distributions of all rows."""
    from scipy.optimize import minimize

    X, codes = drawn[0][:12], drawn[1][:12]
    A, truth = np.c_[X, np.ones(12)], np.eye(3)[codes]
    for rule in ("potentials", "predictor"):
        fitted = AdversarialClassifier(PRICES.to_numpy(), C=0.3, rule=rule, tol=1e-8).fit(X, codes)
        each, room = fitted.cost_matrix_[fitted.predict_codes(X)] / 12, (fitted.lam_ * np.linalg.norm(fitted.theta_)) ** 2

        def left(q: Any, room: float = room) -> float:
            return room - ((A.T @ (q.reshape(12, 3) - truth) / 12) ** 2).sum()

        rules = [{"type": "eq", "fun": lambda q: q.reshape(12, 3).sum(axis=1) - 1}, {"type": "ineq", "fun": left}]
        found = minimize(lambda q, each=each: -(q.reshape(12, 3) * each).sum(), truth.ravel(), bounds=[(0, 1)] * 36, constraints=rules)
        assert found.success
        claimed = fitted.worst_case(X, codes, None)
        assert claimed.seen < -found.fun <= claimed.predicted + 1e-6


def test_prices_of_pairs_are_kept_under_their_claim(drawn) -> None:
    """As rows of classes these prices would cost twice what the game promises."""
    X, codes = drawn
    fitted = AdversarialClassifier(PRICES, C=10.0).fit(X, KINDS[codes])
    claimed = fitted.worst_case(X, codes, None)
    assert PRICES.to_numpy()[fitted.predict_codes(X), codes].mean() <= claimed.predicted < 0.45
    by_place = AdversarialClassifier(PRICES.to_numpy(), C=10.0).fit(X, codes)
    # rows without names are the classes: what these predictions cost is above the game value, and said
    assert by_place.worst_case(X, codes, None).seen > by_place.certificate_.game_value
    assert by_place.worst_case(X, codes, None).predicted >= by_place.worst_case(X, codes, None).seen


@pytest.mark.parametrize("many", [False, True])
def test_costs_of_rows_have_a_claim_too(many, drawn) -> None:
    X, _ = drawn
    random = np.random.default_rng(2)
    costs = random.uniform(0, 3, (60, 3)) if many else np.round(random.uniform(0, 1, (60, 3)))
    fitted = AdversarialCostClassifier(C=0.5).fit(X, costs=costs)
    claimed = fitted.worst_case(X, costs, None)
    assert claimed.seen == pytest.approx(costs[np.arange(60), fitted.predict_codes(X)].mean())
    assert max(claimed.seen, claimed.mixed) <= claimed.predicted + 1e-9


@pytest.mark.parametrize("method", ["adversarial", "bep", "ova", "cs", "two_stage"])
def test_only_rules_that_a_game_covers_have_a_claim(method, drawn) -> None:
    X, codes = drawn
    fitted = AbstainingClassifier(method, alpha=0.3).fit(X, codes)
    claimed = fitted.worst_case(X, codes, None)
    assert (claimed is not None) == (method == "adversarial")
    if claimed is not None:
        fitted.tau = 0.4  # another rule than the loss's own
        again = fitted.worst_case(X, codes, None)
        assert again.seen == pytest.approx(fitted.cost_matrix_[fitted.predict_codes(X), codes].mean())
        assert again.seen <= again.predicted + 1e-9
        assert (claimed.rule, again.rule) == ("predictor", "threshold")
    assert AdversarialClassifier("cs").fit(X, codes).worst_case(X, codes, None) is None


def test_negative_costs_are_said(drawn) -> None:
    X, codes = drawn
    matrix = [[-1.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    with pytest.warns(UserWarning, match="the cost matrix has negative entries"):
        fitted = AdversarialClassifier(matrix).fit(X, codes)
    assert "negative entries" in fitted.remarks_[0]
