"""Rows of ``arithmetic=portable`` have the same bits at every level of instructions, under every BLAS and with every loop of NumPy."""

from __future__ import annotations

import os
import subprocess
import sys

import pandas as pd
import pytest

from advcli.core.compiled import usable_levels

FITS = """
import hashlib, sys, warnings
import numpy as np
from scipy import sparse
from sklearn.datasets import load_iris, load_wine
from advcli import *
from advcli.core.arithmetic import using
warnings.simplefilter("ignore")
X, y = load_wine(return_X_y=True)
X, Z = (X - X.mean(0)) / X.std(0), load_iris(return_X_y=True)[0]
z = np.repeat([0, 1, 2], 50)
METHODS = [
    *(AdversarialClassifier(C=10.0, loss=loss) for loss in ("zero_one", "absolute", "squared", "ww", "cs", "llw", "entropy")),
    *(AdversarialClassifier(C=10.0, solver=solver) for solver in ("dual", "newton", "interior_point", "constraint_generation")),
    *(AdversarialClassifier(C=10.0, kernel=kernel) for kernel in ("rbf", "poly")),
    AdversarialClassifier(C=10.0, features="kernel_pca"), AdversarialClassifier(C=10.0, features="nystroem"),
    AdversarialClassifier(C=10.0, calibrate="vector"), AbstainingClassifier(C=10.0),
    OneVersusOneClassifier(C=10.0), OneVersusAllClassifier(C=10.0), CostSensitiveClassifier(C=10.0),
    *(OrdinalClassifier(C=10.0, method=method) for method in ("at", "it", "red_th", "svorim", "svorex")),
    *(OrdinalClassifier(C=10.0, method=method, alpha=alpha) for method in ("at", "it") for alpha in (1.0, 2.0)),
    OrdinalAdversarialClassifier(C=10.0), PerceptronClassifier(),
]
noisy = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
tree = [("top", "a"), ("top", "b"), ("a", "0"), ("a", "1"), ("b", "2")]
labels = np.eye(3, dtype=int)[y] | (X[:, :3] > 0.5)
FITTED = [
    *((method, (rows, seen), {}) for method in METHODS for rows, seen in ((X, y), (Z, z))),
    *((MultilabelClassifier(surrogate=surrogate), (X, labels), {}) for surrogate in ("slack", "margin", "log")),
    *((HierarchicalClassifier(tree, model=model), (X, y.astype(str)), {}) for model in ("nhsvm", "hsvm", "ssvm")),
    (ChainClassifier(), (X, y), {"groups": np.arange(len(y)) // 5}),
    (UMAClassifier(confusion=noisy), (X, y), {}),
    (AdversarialClassifier(C=10.0), (sparse.csr_array(np.where(X > 0.5, X, 0.0)), y), {}),
]
with using("portable"):
    for method, data, more in FITTED:
        method.fit(*data, **more)
        learned = [getattr(method, name, None) for name in ("coef_", "thresholds_", "intercept_")]
        if hasattr(method, "decision_function"):
            learned.append(method.decision_function(data[0]))
        if getattr(method, "certificate_", None) is not None:
            learned.append([method.certificate_.primal, method.certificate_.dual])
        digest = hashlib.sha256()
        for each in learned:
            digest.update(b"" if each is None else np.ascontiguousarray(each, dtype=float).tobytes())
        print(method, digest.hexdigest()[:16])
"""

SHORT = {
    "OPENBLAS_CORETYPE": "Prescott",
    "ADVCLI_SIMD": "portable",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX2 FMA3 AVX512F AVX512CD AVX512_SKX",  # names of NumPy from 2.4 on, and before
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F",
}
"""The narrowest instructions of each library."""
CORES = ("Haswell", "Zen", "SkylakeX", "Prescott")


def told(code: str, **environment: str) -> str:
    """Return what a program prints in this environment."""
    # NumPy refuses to switch off what a build or a processor does not have; it warns then, on standard error
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    ).stdout


def test_fits_have_the_same_bits_in_the_narrowest_environment() -> None:
    wanted = told(FITS)
    assert len(wanted.splitlines()) > 60
    assert told(FITS, **SHORT) == wanted


@pytest.mark.slow
def test_fits_have_the_same_bits_under_every_blas_and_level() -> None:
    wanted = told(FITS)
    for core in CORES:
        for level in usable_levels():
            assert told(FITS, OPENBLAS_CORETYPE=core, ADVCLI_SIMD=level) == wanted, (core, level)


def test_rows_have_the_same_bits(tmp_path) -> None:
    runs = []
    for name, environment in (("a", {}), ("b", SHORT)):
        words = ["dataset=iris", "arithmetic=portable", "protocol.n_splits=2", "confirm=false", f"results_dir={tmp_path}", f"name={name}"]
        command = [sys.executable, "-m", "advcli", *words]
        subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True)
        rows = pd.read_csv(tmp_path / name / "runs.csv")
        runs.append(rows.drop(columns=[column for column in rows if "seconds" in column]))
    pd.testing.assert_frame_equal(*runs, check_exact=True)
    assert runs[0]["options"].str.contains("arithmetic=portable").all()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["loss=zero_one,logistic"], "LogisticRegression"),
        (["solver=lbfgs"], "solver=lbfgs"),
        (["loss=zero_one,metric"], "loss=metric"),
        (["loss=uma", "loss.confusion=joint"], "confusion=joint"),
        (["dataset=emotions", "loss=sets", "loss.surrogate=prob"], "loss.surrogate=prob"),
    ],
)
def test_other_libraries_are_refused_before_any_work(words, what, tmp_path) -> None:
    fixed = [
        *([] if words[0].startswith("dataset") else ["dataset=iris"]),
        "arithmetic=portable",
        "confirm=false",
        f"results_dir={tmp_path}",
    ]
    multirun = ["-m"] if "," in words[0] else []
    made = subprocess.run(
        [sys.executable, "-m", "advcli", *multirun, *fixed, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert made.returncode == 2
    assert f"{what} needs arithmetic=fast" in made.stderr
    assert not list(tmp_path.rglob("*.csv"))
