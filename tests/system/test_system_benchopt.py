"""The benchopt benchmark: its formulas say what our learners minimise, its bounds bound, and every rival that is installed is certified."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from support.module_files import module_of

FOLDER = Path(__file__).parents[2] / "benchmarks" / "benchopt"
NAMES = (
    "cs", "ww", "llw", "zero_one", "zero_one_box", "ova", "ovo_rbf", "logistic",
    "red_th", "red_th_rbf", "svorim_rbf", "svorex_rbf", "logistic_at",
)  # fmt: skip


@pytest.fixture(scope="module")
def models() -> Iterator[ModuleType]:
    sys.path.insert(0, str(FOLDER))
    try:
        from benchmark_utils import models

        yield models
    finally:
        sys.path.remove(str(FOLDER))


def problem(models: ModuleType, name: str, k: int, C: float):
    random = np.random.default_rng(k)
    X = random.normal(size=(60, 3))
    X[:5] = X[5:10]  # equal rows, most of them of different labels
    line = X @ [1.0, 0.5, 0.0] + 0.5 * random.normal(size=60)
    return models.MODELS[name](X, np.digitize(line, np.quantile(line, np.arange(1, k) / k)), C)


def moved(point: dict, size: float) -> dict:
    random = np.random.default_rng(0)
    return {name: np.sort(value + size * random.normal(size=value.shape), axis=0) if name == "eta" else value
            + size * random.normal(size=value.shape) for name, value in point.items()}  # fmt: skip


def test_every_model_is_tested(models: ModuleType) -> None:
    assert set(models.MODELS) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [2, 4])
def test_the_formula_is_what_our_learner_minimises_and_the_bound_lies_below(models: ModuleType, name: str, k: int) -> None:
    found = problem(models, name, k, 4.0)
    if k < found.least:
        assert name == "zero_one_box"
        return
    fitted = found.own(1e-6, max_passes=1e6).fit(found.rows(), found.y)
    point = found.point(fitted)
    primal, bound = found.judge(point)
    assert found.primal(**point) == pytest.approx(fitted.certificate_.primal, rel=1e-9)
    assert primal == pytest.approx(found.primal(**point), rel=1e-12)
    assert -1e-9 <= (primal - bound) / primal <= 2e-5
    for size in (1e-3, 0.1, 1.0):
        elsewhere, still = found.judge(moved(point, size))
        assert still <= primal * (1.0 + 1e-9)
        assert elsewhere > primal * (1.0 - 1e-5)
    assert found.judge(found.start())[0] > primal


@pytest.mark.parametrize("name", ["logistic", "logistic_at"])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_the_bounds_of_logistic_models_bound_and_meet_the_optimum(models: ModuleType, name: str, C: float) -> None:
    from scipy.optimize import minimize

    found = problem(models, name, 3, C)
    start = found.start()
    sizes = np.cumsum([value.size for value in start.values()])[:-1]

    def point(v: np.ndarray) -> dict:
        parts = np.split(v, sizes)
        return {key: part.reshape(start[key].shape) for key, part in zip(start, parts, strict=True)}

    best = minimize(lambda v: found.primal(**point(v)), np.zeros(sum(value.size for value in start.values())), tol=1e-12)
    primal, bound = found.judge(point(best.x))
    assert -1e-12 <= primal - bound <= 1e-5 * primal


SOLVERS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem == "mrcpy" else [])  # thousands of steps of Adam
    for path in sorted(FOLDER.glob("solvers/*.py"))
]


@pytest.mark.parametrize("file", SOLVERS)
def test_every_rival_minimises_what_its_models_say(models: ModuleType, file: Path) -> None:
    """Weights of a wrong objective, sign or scale would never be certified."""
    pytest.importorskip("benchopt", reason="benchopt is not installed: pip install benchopt")
    try:
        module = module_of(file, f"rival_{file.stem}")
    except ImportError as error:
        pytest.skip(f"{error.name} is not installed: {file.name} says what to install")
    for name in module.Solver.models:
        for k in (2, 3, 4):
            solver, found = module.Solver(), problem(models, name, k, 0.5)
            for parameter, values in {"solver": [None], **module.Solver.parameters}.items():
                setattr(solver, parameter, values[0])
            if k < found.least or solver.skip(name, found)[0]:
                continue
            solver.set_objective(name, found)
            gaps = []
            for tolerance in (1e-1, 1e-3, 1e-5, 1e-7):
                solver.run(tolerance)
                primal, bound = found.judge(solver.get_result()["point"])
                gaps.append((primal - bound) / primal)
                if gaps[-1] < models.GOAL:
                    break
            assert min(gaps) < models.GOAL, (name, k, gaps)
            assert min(gaps) > -1e-9, (name, k, gaps)


def test_benchopt_reads_the_folder_and_its_data(models: ModuleType) -> None:
    pytest.importorskip("benchopt", reason="benchopt is not installed: pip install benchopt")
    from benchopt.benchmark import Benchmark

    benchmark = Benchmark(FOLDER)
    assert {found.name for found in benchmark.get_solvers()} >= {"advcli", "scikit-learn", "LIBLINEAR", "LIBSVM"}
    (tiny,) = (found for found in benchmark.get_datasets() if found.name == "simulated")
    objective = benchmark.get_benchmark_objective().get_instance(model="cs", C=1.0)
    objective._set_dataset(tiny.get_instance(**{"n, d, k": (80, 3, 3), "ordered": True}))
    assert objective(objective.get_one_result())[0]["objective_value"] > models.GOAL
