import dataclasses

import numpy as np
import pytest

from advcli import metrics
from advcli.config.protocol import Protocol
from advcli.core import hyper as hypers
from advcli.core.errors import ConfigError
from advcli.core.hyper import Hyper
from advcli.evaluation.part import Part
from advcli.evaluation.selection import HyperSearch, find_axes
from advcli.learners import Method

SOLVER = {"name": "auto", "tol": 1e-3, "search_tol": 1e-2}


class Searched(Method):
    """A method that says what it searches."""

    def __init__(self, hyper, searched, candidates=None, reach=None):
        super().__init__({"name": "zero_one"}, {}, SOLVER, hyper or {})
        vars(self).update(own_searched=searched, own_candidates=candidates or {}, own_reach=reach or {})

    searched = property(lambda self: self.own_searched)
    candidates = property(lambda self: self.own_candidates)
    reach = property(lambda self: self.own_reach)


LINEAR, RBF = ("regularisation",), ("regularisation", "gamma")


def run(fakes, protocol=None, names=LINEAR, hyper=None, loss=None, data=None, sample_weight=None, lists=None, reach=None):
    checked = Protocol.from_mapping(fakes.PROTOCOL | (protocol or {}))
    data = data or fakes.make_dataset()

    def make(chosen, seed):
        return fakes.FakeLearner({"name": "zero_one"} | (loss or {}), {"name": "linear"}, SOLVER, chosen, 3, seed, SOLVER["search_tol"])

    def judge(learner, view, held):
        metric = checked.metric or learner.metric_
        return metric, metrics.compute(metric, held.y, learner.predict_codes(view), 3, {})

    axes = find_axes(checked, Searched(hyper, names, lists, reach))
    return HyperSearch(make, judge, checked, axes, 0, "blobs").select(Part(data.X, data.y, sample_weight))


def replace_metric(monkeypatch, name, function):
    monkeypatch.setitem(metrics._registry._items, name, dataclasses.replace(metrics.meaning(name), function=function))


def install_scores(fakes, monkeypatch, score):
    """Make the value of a fit a function of its hyper-parameters."""
    fits = []
    fit = fakes.FakeLearner.fit

    def remember(self, *arguments, **more):
        fits.append(self.hyper)
        return fit(self, *arguments, **more)

    monkeypatch.setattr(fakes.FakeLearner, "fit", remember)
    replace_metric(monkeypatch, "error", lambda y, p, k, options: score(fits[-1], len(y)))


def test_two_stages_and_every_fit_is_recorded(fakes):
    result = run(fakes)
    assert len(result.rows) == 2 * 3 * 3
    assert {row["stage"] for row in result.rows} == {1, 2}
    keys = {"C", "metric", "value", "objective", "dual_objective", "relative_gap", "passes", "converged", "seconds"}
    assert keys <= result.rows[0].keys()
    assert result.rows[0]["relative_gap"] == 0.005  # the fake stops at half its tolerance: search_tol was used
    assert result.rows[0]["n_train"] + result.rows[0]["n_test"] == 60


def test_path_runs_from_strong_to_weak_with_warm_starts(fakes):
    run(fakes)
    path = fakes.LOG[:3]
    assert [entry.hyper["C"] for entry in path] == [0.1, 1.0, 10.0]
    assert path[0].start is None
    assert path[1].start is path[0].estimator
    assert path[2].start is path[1].estimator
    assert fakes.LOG[3].start is None  # the next fold has other rows


def test_warm_starts_stay_within_one_gamma(fakes):
    run(fakes, names=RBF)
    for entry in fakes.LOG:
        if entry.start is not None:
            assert entry.start.hyper["gamma"] == entry.hyper["gamma"]
    assert sum(entry.start is None for entry in fakes.LOG) == 3 * 2 + 3 * 1  # folds x gammas of both stages


def test_lambda_grid_is_descending(fakes):
    run(fakes, protocol={"regularisation": "lambda"})
    assert [entry.hyper["lambda"] for entry in fakes.LOG[:3]] == [10.0, 1.0, 0.1]


@pytest.mark.parametrize(("view", "strongest"), [("C", 0.05), ("lambda", 20.0)])
def test_ties_go_to_the_strongest_regularisation(fakes, monkeypatch, view, strongest):
    install_scores(fakes, monkeypatch, lambda hyper, n: 1 / n)
    result = run(fakes, protocol={"regularisation": view}, names=RBF)
    assert result.hyper == {view: strongest, "gamma": 0.5}


@pytest.mark.parametrize(("name", "strongest"), [("gamma", 0.5), ("tolerance", 2.0), ("rho", 0.5)])
def test_ties_go_to_the_strong_end_of_every_hyper_parameter(fakes, monkeypatch, name, strongest):
    """A wide kernel and a wide box of moments regularise more than narrow ones; of values without an order the smallest comes first."""
    install_scores(fakes, monkeypatch, lambda hyper, n: 1 / n)
    protocol = {"stage1": {"regularisation": [1], name: [1, 0.5, 2]}, "stage2": None}
    assert run(fakes, protocol=protocol, names=("regularisation", name)).hyper == {"C": 1.0, name: strongest}


def test_the_end_of_a_list_that_is_no_range_is_no_edge(fakes, monkeypatch):
    install_scores(fakes, monkeypatch, lambda hyper, n: 1 / n)
    for name, edges in (("gamma", 1), ("rho", 0), ("margin_power", 0)):
        protocol = {"stage1": {"regularisation": [1], name: [0.5, 1, 2]}, "stage2": None}
        assert len(run(fakes, protocol=protocol, names=("regularisation", name)).edges) == edges


def test_the_table_of_hyper_parameters_has_one_meaning_a_name(monkeypatch):
    monkeypatch.setattr(hypers, "_TABLE", dict(hypers._TABLE))
    width = Hyper("width", "of a map of one's own", strong="large")
    for _ in range(2):
        hypers.register(width)
    assert hypers.hyper("width") == width
    with pytest.raises(ConfigError, match="there is a hyper-parameter width already: of a map of one's own"):
        hypers.register(Hyper("width", "another one"))
    with pytest.raises(ConfigError, match="there is a hyper-parameter regularisation already"):
        hypers.register(Hyper("regularisation", "an axis of the search is no hyper-parameter"))
    with pytest.raises(ConfigError, match="depth regularises at strong=small or strong=large, not 'deep'"):
        hypers.register(Hyper("depth", "of a tree", strong="deep"))
    assert "depth" not in hypers.known()


def test_ties_are_exact_although_folds_differ_in_size(fakes, monkeypatch):
    # 61 rows in 3 folds: means of rates 1/21 + 0 + 0 and 0 + 0 + 1/20 differ, one error in 61 rows is one error
    errors = {0.1: [0, 0, 1], 1.0: [1, 0, 0], 10.0: [1, 1, 1]}
    seen = {}

    def score(hyper, n):
        key = hyper["C"]
        seen[key] = seen.get(key, -1) + 1
        return errors.get(key, [0, 0, 0])[seen[key] % 3] / n

    install_scores(fakes, monkeypatch, score)
    result = run(fakes, data=fakes.make_dataset(n=61), protocol={"stage2": None})
    assert result.hyper == {"C": 0.1}


def test_ties_are_exact_although_rates_are_rounded(fakes, monkeypatch):
    """1/49 of 49 rows is a little less than one row in doubles, 3/49 is not: two errors and one more are three errors all the same."""
    assert 1 / 49 * 49 + 2 / 49 * 49 < 3 / 49 * 49 == 3
    errors = {0.1: [3, 0, 0], 1.0: [1, 2, 0], 10.0: [2, 1, 1]}
    seen = dict.fromkeys(errors, -1)

    def score(hyper, n):
        seen[hyper["C"]] += 1
        return errors[hyper["C"]][seen[hyper["C"]]] / n

    install_scores(fakes, monkeypatch, score)
    assert run(fakes, data=fakes.make_dataset(n=147), protocol={"stage2": None}).hyper == {"C": 0.1}


def test_stage_two_multiplies_the_winner(fakes, monkeypatch):
    install_scores(fakes, monkeypatch, lambda hyper, n: round(10 * abs(np.log(hyper["C"] / 2.1))) / n)
    result = run(fakes)
    assert [row["C"] for row in result.rows if row["stage"] == 2][:3] == [0.5, 1.0, 2.0]
    assert result.hyper == {"C": 2.0}
    assert result.edges == ()


@pytest.mark.parametrize(("target", "side", "value"), [(1e9, "largest", "20"), (1e-9, "smallest", "0.05")])
def test_edges_are_reported(fakes, monkeypatch, target, side, value):
    install_scores(fakes, monkeypatch, lambda hyper, n: round(10 * abs(np.log(hyper["C"] / target))) / n)
    (edge,) = run(fakes).edges
    assert f"C={value} is the {side} value tried" in edge


def test_edge_of_stage_two_inside_the_whole_range_is_no_edge(fakes, monkeypatch):
    # 2 is the end of stage two's (0.5, 1, 2), but stage one has tried 10
    install_scores(fakes, monkeypatch, lambda hyper, n: round(10 * abs(np.log(hyper["C"] / 2.0))) / n)
    result = run(fakes)
    assert result.hyper == {"C": 2.0}
    assert result.edges == ()


def test_higher_is_better_is_maximised(fakes, monkeypatch):
    fits = []
    fit = fakes.FakeLearner.fit
    monkeypatch.setattr(fakes.FakeLearner, "fit", lambda self, *a, **m: (fits.append(self.hyper), fit(self, *a, **m))[1])
    replace_metric(monkeypatch, "accuracy", lambda y, p, k, o: (5 if fits[-1]["C"] == 10 else 1) / len(y))
    assert run(fakes, protocol={"metric": "accuracy", "stage2": None}).hyper == {"C": 10.0}


def test_nan_never_wins(fakes, monkeypatch):
    install_scores(fakes, monkeypatch, lambda hyper, n: float("nan") if hyper["C"] < 10 else 1.0)
    assert run(fakes, protocol={"stage2": None}).hyper == {"C": 10.0}


def test_fixed_values_are_not_searched(fakes):
    result = run(fakes, names=RBF, hyper={"C": 3})
    assert {row["C"] for row in result.rows} == {3.0}
    assert result.hyper["C"] == 3.0
    assert len(result.rows) == 3 * 2 + 3 * 1
    nothing = run(fakes, names=RBF, hyper={"lambda": 0.5, "gamma": 2, "C": None})
    assert (nothing.hyper, nothing.rows) == ({"lambda": 0.5, "gamma": 2.0}, [])


def test_standardisation_inside_the_folds(fakes):
    data = fakes.make_dataset()
    run(fakes, data=data)
    entry = fakes.LOG[0]
    np.testing.assert_allclose(entry.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(entry.X.std(axis=0, ddof=1), 1)
    fakes.LOG.clear()
    run(fakes, data=data, protocol={"standardise": "train"})
    assert np.abs(fakes.LOG[0].X.mean(axis=0)).max() > 1e-6  # the whole part's mean, not the fold's
    whole = np.unique(np.concatenate([entry.X for entry in fakes.LOG[:9]]), axis=0)
    np.testing.assert_allclose(whole.mean(axis=0), 0, atol=1e-12)
    fakes.LOG.clear()
    run(fakes, data=data, protocol={"standardise": "none"})
    assert set(map(tuple, fakes.LOG[0].X)) <= set(map(tuple, data.X))


def test_weights_follow_their_rows(fakes):
    data = fakes.make_dataset()
    weight = data.X[:, 0] ** 2 + 1
    run(fakes, data=data, protocol={"standardise": "none"}, sample_weight=weight)
    for entry in fakes.LOG:
        np.testing.assert_allclose(entry.weight, entry.X[:, 0] ** 2 + 1)


@pytest.mark.parametrize(
    ("hyper", "names", "message"),
    [
        ({"gamma": 1}, LINEAR, "hyper.gamma is no hyper-parameter of this method; it has C, lambda"),
        ({"C": 0}, LINEAR, "hyper.C=.* is not valid; give a finite number above 0"),
        ({"C": -1}, LINEAR, "above 0"),
        ({"C": float("nan")}, LINEAR, "above 0"),
        ({"C": "a"}, LINEAR, "above 0"),
        ({"C": 1, "lambda": 1}, LINEAR, "fix only one"),
        ({}, ("regularisation", "width"), r"protocol.stage1.width"),
    ],
)
def test_bad_hyper_parameters(fakes, hyper, names, message):
    with pytest.raises(ConfigError, match=message):
        find_axes(Protocol.from_mapping(fakes.PROTOCOL), Searched(hyper, names))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_split": 3}, "did you mean n_splits"),
        ({"n_splits": 0}, "at least 1"),
        ({"folds": 1}, "at least 2"),
        ({"train_size": 1.5}, "between 0 and 1"),
        ({"standardise": "folds"}, "did you mean fold"),
        ({"regularisation": "c"}, "C, lambda"),
        ({"metric": "eror"}, "did you mean error"),
        ({"metrics": ["maee"]}, "did you mean mae"),
        ({"stage1": {"regularisation": [1, -1]}}, "every element must be a finite number above 0"),
        ({"stage2": {"regularisation": []}}, "stage2.regularisation=.. is empty; give at least one value"),
        ({"stage1": {"gama": [1]}}, "did you mean protocol.stage1.gamma"),
        ({"stage1": [1, 2]}, "is not a group of lists"),
    ],
)
def test_bad_protocols(fakes, change, message):
    with pytest.raises(ConfigError, match=message) as caught:
        Protocol.from_mapping(fakes.PROTOCOL | change)
    assert "\n" not in str(caught.value)


# ---- grids that grow, near-ties


def grown(fakes, monkeypatch, score, limits=(2**-12, 2**12), **protocol):
    """Search C from 1/2, 1, 2 in one stage, with limits, by errors that are a function of C; return what was chosen, tried and said."""
    install_scores(fakes, monkeypatch, lambda hyper, n: score(hyper["C"]) / n)
    stages = {"stage1": {"regularisation": [0.5, 1, 2]}, "stage2": None, "extend": {"regularisation": list(limits)}}
    selection = run(fakes, protocol=stages | protocol)
    return selection.hyper["C"], sorted({row["C"] for row in selection.rows}), selection.edges


@pytest.mark.parametrize("power", range(-8, 9))
def test_the_search_goes_on_while_an_end_wins(fakes, monkeypatch, power):
    chosen, tried, edges = grown(fakes, monkeypatch, lambda C: round(abs(np.log2(C) - power)))
    assert (chosen, edges) == (2.0**power, ())
    # one value beyond the best one where that is an end, none on the other side
    low, high = power - 1 if power <= -1 else -1, power + 1 if power >= 1 else 1
    assert tried == [2.0**i for i in range(low, high + 1)]


def test_the_search_ends_at_a_limit_and_says_so(fakes, monkeypatch):
    chosen, tried, edges = grown(fakes, monkeypatch, lambda C: round(np.log2(C) + 20), limits=(0.1, 16))
    assert (chosen, tried) == (0.125, [0.125, 0.25, 0.5, 1, 2])
    assert edges == ("C=0.125 is the smallest value tried (0.125 to 2); widen protocol.extend.regularisation",)


def test_the_search_does_not_go_on_along_a_plateau(fakes, monkeypatch):
    """As C goes to 0 predictions stay as they are: ties would lead to the limit."""
    chosen, tried, edges = grown(fakes, monkeypatch, lambda C: 3)
    assert (chosen, tried, edges) == (0.5, [0.25, 0.5, 1, 2], ())


def test_a_list_beyond_its_limits_is_not_shortened(fakes, monkeypatch):
    chosen, tried, _ = grown(fakes, monkeypatch, lambda C: round(np.log2(C) + 20), limits=(0.75, 1.5))
    assert (chosen, tried) == (0.5, [0.5, 1, 2])


@pytest.mark.parametrize(("view", "best"), [("C", 0.25), ("lambda", 8.0)])
def test_growing_keeps_ties_with_the_strong_end(fakes, monkeypatch, view, best):
    install_scores(fakes, monkeypatch, lambda hyper, n: (2 if hyper[view] in (best, 2 * best) else 5) / n)
    stages = {
        "stage1": {"regularisation": [0.5, 1, 2]},
        "stage2": None,
        "extend": {"regularisation": [2**-6, 2**6]},
        "regularisation": view,
    }
    chosen = run(fakes, protocol=stages).hyper[view]
    # C: 0.25 is strictly better than the list but for 0.5, which ties; lambda: 4 is not better and 8 is not reached
    assert chosen == {"C": 0.5, "lambda": 2.0}[view]


def test_two_axes_grow_together(fakes, monkeypatch):
    def score(hyper, n):
        return round(abs(np.log2(hyper["C"] / 8)) + abs(np.log2(hyper["gamma"] * 8))) / n

    install_scores(fakes, monkeypatch, score)
    limits = {"regularisation": [2**-9, 2**9], "gamma": [2**-9, 2**9]}
    stages = {"stage1": {"regularisation": [1, 2], "gamma": [0.5, 1]}, "stage2": None, "extend": limits}
    selection = run(fakes, protocol=stages, names=RBF)
    assert selection.hyper == {"C": 8.0, "gamma": 0.125}
    assert selection.edges == ()


OWN = "loss.options.depth"
GROWS = {"extend": {"regularisation": [2**-12, 2**12]}, "stage2": None}


@pytest.mark.parametrize("power", range(-8, 9))
def test_a_list_of_the_methods_own_grows_as_the_protocols_do(fakes, monkeypatch, power):
    """Named C in one search and a parameter of the method in the other: the same values are tried, and the same one is chosen."""
    chosen, tried, edges = grown(fakes, monkeypatch, lambda C: round(abs(np.log2(C) - power)))
    install_scores(fakes, monkeypatch, lambda hyper, n: round(abs(np.log2(hyper[OWN]) - power)) / n)
    selection = run(fakes, protocol=GROWS, names=(), lists={OWN: (0.5, 1.0, 2.0)}, reach={OWN: (2**-12, 2**12)})
    assert (selection.hyper, selection.edges) == ({OWN: chosen}, edges)
    assert sorted({row[OWN] for row in selection.rows}) == tried


def test_a_list_of_the_methods_own_ends_at_its_limit_and_says_so(fakes, monkeypatch):
    install_scores(fakes, monkeypatch, lambda hyper, n: round(np.log2(hyper[OWN]) + 20) / n)
    selection = run(fakes, protocol=GROWS, names=(), lists={OWN: (2, 1.0, 0.5)}, reach={OWN: (0.1, 16)})
    assert selection.hyper == {OWN: 0.125}
    assert selection.edges == (f"{OWN}=0.125 is the smallest value tried (0.125 to 2); widen loss.extend.depth",)


def test_a_list_of_whole_numbers_stays_whole(fakes, monkeypatch):
    install_scores(fakes, monkeypatch, lambda hyper, n: abs(hyper[OWN] - 40) / n)
    selection = run(fakes, protocol=GROWS, names=(), lists={OWN: (25, 15, 9)}, reach={OWN: (1, 100)})
    assert selection.hyper == {OWN: 42}
    assert sorted({row[OWN] for row in selection.rows}) == [9, 15, 25, 42, 71]
    assert all(isinstance(row[OWN], int) for row in selection.rows)


def test_a_list_of_the_methods_own_grows_beside_the_strength(fakes, monkeypatch):
    install_scores(fakes, monkeypatch, lambda hyper, n: round(abs(np.log2(hyper["C"] / 8)) + abs(np.log2(hyper[OWN] * 8))) / n)
    protocol = GROWS | {"stage1": {"regularisation": [1, 2]}}
    selection = run(fakes, protocol=protocol, lists={OWN: (0.5, 1), "loss.options.kind": ("a", True, None)}, reach={OWN: (2**-9, 2**9)})
    assert selection.hyper == {"C": 8.0, OWN: 0.125, "loss.options.kind": "a"}
    assert selection.edges == ()


@pytest.mark.parametrize(("protocol", "reach"), [({}, {OWN: (0.1, 16)}), (GROWS, None)])
def test_a_list_of_the_methods_own_stays_where_no_limit_is_stated(fakes, monkeypatch, protocol, reach):
    """The protocols of the papers have grids that do not grow, and an outside estimator may refuse what it is not meant to take."""
    install_scores(fakes, monkeypatch, lambda hyper, n: round(np.log2(hyper[OWN]) + 20) / n)
    selection = run(fakes, protocol={"stage2": None} | protocol, names=(), lists={OWN: (2.0, 1.0, 0.5)}, reach=reach)
    assert sorted({row[OWN] for row in selection.rows}) == [0.5, 1.0, 2.0]
    assert selection.edges == (f"{OWN}=0.5 is the smallest value tried (0.5 to 2); widen loss.grid.depth",)


@pytest.mark.parametrize(("standard_errors", "chosen"), [(0.0, 4.0), (0.5, 2.0), (1.0, 1.0), (50.0, 0.5)])
def test_near_ties_go_to_the_strongest_regularisation(fakes, monkeypatch, standard_errors, chosen):
    """20 rows a fold: 2, 4 and 6 errors at C = 4 are rates with the standard error 1/(10 sqrt(3)), 3.46 errors in all."""
    errors = {0.5: [9, 9, 9], 1.0: [5, 5, 5], 2.0: [4, 4, 5], 4.0: [2, 4, 6]}
    seen = dict.fromkeys(errors, -1)

    def score(hyper, n):
        seen[hyper["C"]] += 1
        return errors[hyper["C"]][seen[hyper["C"]]] / n

    install_scores(fakes, monkeypatch, score)
    protocol = {"stage1": {"regularisation": [0.5, 1, 2, 4]}, "stage2": None, "standard_errors": standard_errors}
    assert run(fakes, protocol=protocol).hyper == {"C": chosen}


def test_a_hold_out_has_no_standard_error(fakes, monkeypatch):
    install_scores(fakes, monkeypatch, lambda hyper, n: {0.1: 4, 1.0: 3, 10.0: 3}[hyper["C"]] / n)
    protocol = {"stage1": {"regularisation": [0.1, 1, 10]}, "stage2": None, "holdout": 0.3, "standard_errors": 100.0}
    assert run(fakes, protocol=protocol).hyper == {"C": 1.0}


@pytest.mark.parametrize("limits", [[1], [2, 1], [1, 2, 3]])
def test_limits_are_a_pair(limits):
    with pytest.raises(ConfigError, match=r"protocol.extend.gamma=.* give \[SMALLEST,LARGEST\], or null"):
        Protocol.from_mapping({"extend": {"gamma": limits}})


def test_null_is_an_empty_group_of_lists():
    for key in ("stage1", "stage2", "extend"):
        assert getattr(Protocol.from_mapping({key: None}), key) == {}
        assert getattr(Protocol.from_mapping({key: {"gamma": None}}), key) == {}
