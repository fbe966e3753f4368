"""The benchmarks run at tiny sizes; nothing is timed here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.module_files import module_of

FOLDER = Path(__file__).parents[2] / "benchmarks" / "speed"


def load(name):
    return module_of(FOLDER / f"{name}.py", f"benchmarks_{name}")


def run(*arguments):
    environment = {key: value for key, value in os.environ.items() if key != "ADVCLI_DATA"}
    command = [sys.executable, str(FOLDER / "run.py"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow  # half a minute; every change runs the oracle's benchmark below
def test_every_benchmark_runs_and_prints_its_ratios():
    ran = run("--tiny")
    assert ran.returncode == 0, ran.stderr
    for name in load("run").BENCHMARKS:
        assert f"\n{name}: " in ran.stdout
    assert "epoch/floor digits" in ran.stdout
    assert "LinearSVC / zero_one 1e-3, median" in ran.stdout
    assert "set ADVCLI_DATA" in ran.stdout  # what could not be measured is said


def test_names_choose():
    ran = run("oracle", "--tiny")
    assert ran.returncode == 0, ran.stderr
    assert "oracle, k=10" in ran.stdout
    assert "epoch/floor" not in ran.stdout
    assert run("orakle", "--tiny").returncode == 2


def test_verdicts():
    Row = load("measure").Row
    assert Row("a", 4.0, 3.0, 9.0).verdict == "must"
    assert Row("a", 9.5, 3.0, 9.0).verdict == "aim"
    assert Row("a", 2.0, 3.0, 9.0).verdict == "MISSED"
    assert Row("a", 2.0, 3.0, 1.0, larger=False).verdict == "must"
    assert Row("a", 4.0, 3.0, 1.0, larger=False).verdict == "MISSED"
    assert Row("a", 4.0).verdict == ""
    assert Row("a", 4.0, None, 40.0).verdict == ""
    text = load("measure").table([Row("a", 4.0, 3.0, 9.0, detail="x")])
    assert ">= 3" in text
    assert "must" in text


def test_timings_take_turns():
    measure, order = load("measure"), []
    found = measure.interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b") or 2.5}, 3)
    assert order == ["a", "b"] * 3
    assert found["b"] == 2.5
    assert 0 <= found["a"] < 1


@pytest.mark.parametrize("rows", [None, 50])
def test_training_part_is_standardised_with_a_constant(rows):
    X, y = load("measure").training_part("digits", rows)
    assert len(X) == len(y) == (rows or 1797)
    assert (X[:, -1] == 1.0).all()
    assert abs(X[:, :-1].mean(axis=0)).max() < 1e-12
    assert abs(X[:, :-1].std(axis=0) - 1.0).max() < 1e-12


def test_every_constant_of_a_solver_says_what_it_decides_and_is_set_back_after_a_measurement(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    script = load("constants")
    for solver in script.MODULES:
        for module, name, value, why in script.of_solver(solver):
            assert why, f"{module.__name__}.{name} has no comment"
            restore = script.patched(module, name, script.scaled(value, 2.0))
            assert getattr(module, name) == script.scaled(value, 2.0)
            restore()
            assert getattr(module, name) == value


def test_a_constant_is_set_where_other_modules_took_it(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    script = load("constants")
    from advcli.solvers.newton import binary, linear, proximal

    restore = script.patched(proximal, "CLOSE", 0.5)
    assert (proximal.CLOSE, linear.CLOSE, binary.CLOSE) == (0.5, 0.5, 0.5)
    restore()
    assert (proximal.CLOSE, linear.CLOSE, binary.CLOSE) == (0.3, 0.3, 0.3)
    restore = script.patched(proximal, "MAX_INNER", 7)
    assert proximal.ProximalMethod.most_inner == 7
    restore()
    assert proximal.ProximalMethod.most_inner == proximal.MAX_INNER
