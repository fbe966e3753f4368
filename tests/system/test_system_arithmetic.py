"""Rows of ``arithmetic=portable`` have the same bits at every level of instructions, under every BLAS and with every loop of NumPy.

So have the fits of builds by other compilers and optimisations, and on processors that an emulator stands for.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from advcli.cli import main
from advcli.core.compiled import usable_levels

FITS = """
import hashlib, sys, warnings
import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, load_wine
from advcli import *
from advcli.core.arithmetic import using
warnings.simplefilter("ignore")
X, y = load_wine(return_X_y=True)
X, Z = (X - X.mean(0)) / X.std(0), load_iris(return_X_y=True)[0]
z = np.repeat([0, 1, 2], 50)
digits = load_digits(return_X_y=True)
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
    *((MultilabelClassifier(surrogate=surrogate), (X, labels), {}) for surrogate in ("slack", "margin", "log", "prob")),
    *((HierarchicalClassifier(tree, model=model), (X, y.astype(str)), {}) for model in ("nhsvm", "hsvm", "ssvm")),
    *((ChainClassifier(surrogate=surrogate), (X, y), {"groups": np.arange(len(y)) // 5}) for surrogate in ("slack", "prob")),
    *((SurrogateClassifier(loss, lam=1e-6), digits, {}) for loss in ("zero_one", "cs", "ww")),  # with steps on faces
    (OneVersusOneClassifier(C=1000.0, kernel="rbf", gamma=0.1), (X, y), {}),  # with moves of all rows together
    (OneVersusOneClassifier(C=1000.0, kernel="rbf", gamma=0.01), (digits[0][:600] / 4.0, digits[1][:600]), {}),
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
ROOT = Path(__file__).resolve().parents[2]
PARTS = ("adv_simd.pxd", "adv_elementary.pxd")
CORES = ("Haswell", "Zen", "SkylakeX", "Prescott")


def told(code: str, *before: str, options: tuple[str, ...] = (), **environment: str) -> str:
    """Return what a program prints in this environment; ``before`` are the words of a command that runs Python."""
    # NumPy refuses to switch off what a build or a processor does not have; it warns then, on standard error
    command = [*before, sys.executable, *options, "-c", code]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True).stdout


def needed(*tools: str) -> None:
    """Skip the test unless these programs are installed."""
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


def test_fits_have_the_same_bits_in_the_narrowest_environment() -> None:
    wanted = told(FITS)
    assert len(wanted.splitlines()) > 60
    assert told(FITS, **SHORT) == wanted


@pytest.mark.slow
def test_fits_have_the_same_bits_under_every_blas_and_level() -> None:
    wanted = told(FITS)
    for core in CORES:
        if core == "SkylakeX" and "avx512" not in usable_levels():
            continue  # its loops are instructions that the processor does not have
        for level in usable_levels():
            assert told(FITS, OPENBLAS_CORETYPE=core, ADVCLI_SIMD=level) == wanted, (core, level)


@pytest.mark.slow
@pytest.mark.parametrize(("compiler", "optimisation"), [("clang", 3), ("clang", 1), ("gcc", 2), ("gcc", 1)])
def test_fits_have_the_same_bits_in_every_build(compiler: str, optimisation: int, tmp_path: Path) -> None:
    needed(compiler, "ninja", "cython")
    meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
    if importlib.util.find_spec("mesonbuild") is None:
        pytest.skip("the build tool mesonbuild is not installed")
    options = ["-Dlevels=portable", f"-Doptimization={optimisation}", "-Dpython.purelibdir=/site", "-Dpython.platlibdir=/site"]
    build, environment = str(tmp_path / "build"), {**os.environ, "CC": compiler}
    for words in (["setup", build, str(ROOT), *options], ["install", "-C", build, "--destdir", str(tmp_path)]):
        subprocess.run([*meson, *words], env=environment, check=True, capture_output=True)
    # without site no editable install comes first, nor with -P this folder
    paths = [str(tmp_path / "site"), *(path for path in sys.path if path.endswith("site-packages"))]
    where = "import advcli\nprint(advcli.__file__)\n"
    own, made = told(where + FITS, options=("-S", "-P"), PYTHONPATH=os.pathsep.join(paths)).split("\n", 1)
    assert own.startswith(str(tmp_path))
    assert made == told(FITS)


@pytest.mark.slow
@pytest.mark.parametrize("processor", ["Nehalem", "EPYC"])
def test_fits_have_the_same_bits_on_emulated_processors(processor: str) -> None:
    needed("qemu-x86_64")
    level = "import advcli.core.compiled as compiled\nprint(compiled.kernels.level)\n"
    found, made = told(level + FITS, "qemu-x86_64", "-cpu", processor, ADVCLI_SIMD="", OPENBLAS_CORETYPE="").split("\n", 1)
    assert found == {"Nehalem": "portable"}.get(processor, "avx2" if "avx2" in usable_levels() else "portable")
    assert made == told(FITS)


HARNESS = """
int main(void) {
  uint64_t state = 1, digest = 14695981039346656037u;
  double x[64], y[64], found[9];
  for (int round = 0; round < 200000; round++) {
    for (int i = 0; i < 64; i++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      x[i] = ((double)(int64_t)state) / 9.2e18 * (round % 2 ? 700.0 : 3.0);
      state = state * 6364136223846793005u + 1442695040888963407u;
      y[i] = ((double)(int64_t)state) / 9.2e18;
    }
    adv_vec sum = adv_set(0.0), most = adv_load(x, 0);
    for (int j = 0; j < 64 / ADV_LANES; j++) {
      sum = sum + adv_load(x, j) * adv_load(y, j);
      most = adv_max(most, adv_if_gt(adv_load(y, j), adv_load(x, j), sum, adv_min(adv_load(x, j), sum)));
    }
    found[0] = adv_sum(sum); found[1] = adv_hmax(most); found[2] = adv_elementary_exp(x[0]); found[3] = adv_elementary_log(fabs(x[1]));
    found[4] = adv_elementary_expm1(x[2]); found[5] = adv_elementary_log1p(fabs(x[3])); found[6] = adv_elementary_pow(fabs(x[4]), y[4]);
    found[7] = adv_elementary_pow(fabs(x[5]), 3.0); found[8] = adv_elementary_normal(x[6]);
    const unsigned char *bytes = (const unsigned char *)found;
    for (size_t i = 0; i < sizeof found; i++) digest = (digest ^ bytes[i]) * 1099511628211u;
  }
  printf("%d %016llx\\n", ADV_LANES, (unsigned long long)digest);
  return 0;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("optimisation", ["-O1", "-O3"])
def test_vectors_and_elementary_functions_have_the_same_bits_on_arm64(optimisation: str, tmp_path: Path) -> None:
    needed("cc", "aarch64-linux-gnu-gcc", "qemu-aarch64")
    parts = [re.search(r'"""(.*?)"""', (ROOT / "_ext/support" / name).read_text(encoding="utf-8"), re.S) for name in PARTS]
    source = tmp_path / "harness.c"
    source.write_text("\n".join(["#include <stdio.h>", *(part[1] for part in parts if part), HARNESS]), encoding="utf-8")
    digests = []
    for compiler, run in (("cc", []), ("aarch64-linux-gnu-gcc", ["qemu-aarch64"])):
        program = tmp_path / compiler
        flags = ["-std=gnu11", optimisation, "-ffp-contract=off", "-fno-math-errno", "-Wno-psabi", "-static"]
        subprocess.run([compiler, *flags, "-o", program, source, "-lm"], check=True, capture_output=True)
        digests.append(subprocess.run([*run, program], check=True, capture_output=True, text=True).stdout)
    assert digests[0].startswith("4 ")
    assert digests[1] == digests[0]


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
    assert (runs[0]["arithmetic"] == "portable").all()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["loss=zero_one,logistic"], "LogisticRegression"),
        (["solver=lbfgs"], "solver=lbfgs"),
        (["loss=zero_one,metric"], "loss=metric"),
        (["loss=uma", "loss.confusion=joint"], "confusion=joint"),
    ],
)
def test_other_libraries_are_refused_before_any_work(words, what, tmp_path, capfd) -> None:
    fixed = [
        *([] if words[0].startswith("dataset") else ["dataset=iris"]),
        "arithmetic=portable",
        "confirm=false",
        f"results_dir={tmp_path}",
    ]
    multirun = ["-m"] if "," in words[0] else []
    assert main([*multirun, *fixed, *words]) == 2
    assert f"{what} needs arithmetic=fast" in capfd.readouterr().err
    assert not list(tmp_path.rglob("*.csv"))
