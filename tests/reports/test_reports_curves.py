"""Curves along an option that a sweep varied."""

import re

import numpy as np
import pandas as pd
import pytest

from advcli.reports.curves import CURVE_COLUMNS, curve_points
from advcli.reports.figures import Material, registry


def runs(options, loss="uma", values=(0.1, 0.3), dataset="toy", norm=1.0):
    key = f"{loss}{options}{dataset}"
    common = {
        "dataset": dataset,
        "loss": loss,
        "features": "linear",
        "cell": key,
        "options": options,
        "metric": "error",
        "confusion_norm": norm,
    }
    return [common | {"value": value, "split": split} for split, value in enumerate(values)]


def frame(*parts):
    return pd.DataFrame([row for part in parts for row in part])


def test_points_have_mean_and_standard_error():
    points = curve_points(frame(*(runs(f"noise.step={i}; protocol.name=toy", values=(i / 10, i / 10 + 0.2, np.nan)) for i in range(1, 5))))
    assert list(points.columns) == list(CURVE_COLUMNS)
    assert points["x"].tolist() == [1.0, 2.0, 3.0, 4.0]
    np.testing.assert_allclose(points["mean"], np.arange(1, 5) / 10 + 0.1)
    np.testing.assert_allclose(points["standard_error"], np.std([0, 0.2], ddof=1) / np.sqrt(2))
    assert set(points["option"]) == {"noise.step"}
    assert set(points["n_runs"]) == {2}


def test_options_that_vary_less_tell_lines_apart_and_those_between_losses_do_not():
    parts = [runs(f"loss.rule={rule}; loss.max_updates={n}") for rule in ("error", "random") for n in (1, 2, 5)]
    parts += [runs(f"loss.epochs=20; loss.max_updates={n}", loss="f_y") for n in (1, 2, 5)]
    points = curve_points(frame(*parts))
    assert set(points["line"]) == {"uma rule=error", "uma rule=random", "f_y"}
    assert set(points["option"]) == {"loss.max_updates"}


@pytest.mark.parametrize("options", [["a=1", "a=2"], ["a=x", "a=y", "a=z"], ["a=1"]])
def test_no_curve_from_two_values_or_from_words(options):
    assert curve_points(frame(*(runs(each) for each in options))).empty


def drawn(name, rows=None, summary=None):
    empty = pd.DataFrame()
    return list(
        registry.get(name).draw(Material(empty if rows is None else rows, empty if summary is None else summary, ("error",), "error"))
    )


def test_noise_is_drawn_over_its_size():
    (figure,) = drawn("curves", frame(*(runs(f"noise.step={i}", norm=0.1 * i) for i in range(1, 5))))
    assert figure.name == "curves-accuracy-toy"
    assert "C - diag C" in figure.svg
    assert "standard errors" in figure.caption
    (flat,) = drawn("curves", frame(*(runs(f"noise.told_step={i}") for i in range(1, 5))))
    assert "C - diag C" not in flat.svg
    assert drawn("curves", frame(runs("noise.step=1"))) == []


def summary(count):
    names = [f"uma linear [loss.max_updates={at}, loss.rule=confusion]" for at in range(count)]
    return pd.DataFrame({"dataset": "toy", "method": names, "metric": "error", "mean": 0.2, "std": 0.1, "n_splits": 10})


@pytest.mark.filterwarnings("error::UserWarning")
def test_long_names_do_not_squeeze_the_axes_and_too_many_are_not_drawn():
    (figure,) = drawn("means", summary=summary(20))
    width = float(re.search(r'width="([0-9.]+)pt"', figure.svg)[1])
    assert width < 72 * 8  # the axes alone are 7 inches wide
    assert drawn("means", summary=summary(21)) == []
