"""No argument of a compiled function and no rows at a door of the package end the process.

The calls are made in a process of their own (`hostile_calls.py`, `hostile_rows.py`), so that a crash is a failure that names its call.
"""

import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from support import hostile_rows as rows

from advcli import AdversarialClassifier
from advcli.core.compiled import usable_levels
from advcli.core.errors import DataError

SCRIPTS = Path(__file__).parents[1] / "support"


def run(script, *words, level):
    """Run a script at an instruction set; return the last line of its output, or fail with the call that ended it."""
    environment = {**os.environ, "ADVCLI_SIMD": level, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(SCRIPTS / script), *words], capture_output=True, text=True, env=environment, check=False)
    said = done.stdout.splitlines() or ["nothing was called"]
    if done.returncode < 0:
        pytest.fail(f"{signal.Signals(-done.returncode).name} in: {said[-1]}\n{done.stderr[-3000:]}")
    assert done.returncode == 0, f"{said[-1]}\n{done.stderr[-3000:]}"
    assert "Exception ignored" not in done.stderr, done.stderr[-3000:]
    return said[-1]


def test_every_compiled_function_refuses_or_survives_hostile_arguments():
    """At the widest instructions, whose last rows are fewer than their lanes; all levels check arguments by the same code (slow, below)."""
    level = usable_levels()[0]
    said = run("hostile_calls.py", level, "0", level=level)
    assert said.endswith("refused or harmless")
    assert int(said.split()[0]) > 10_000


@pytest.mark.slow
@pytest.mark.assault("compiled functions: hostile arguments")
@pytest.mark.parametrize("level", usable_levels())
@pytest.mark.parametrize("seed", range(6))
def test_other_hostile_arguments_at_every_level(level, seed, tally):
    said = run("hostile_calls.py", level, str(seed), level=level)
    assert said.endswith("refused or harmless")
    tally.count(said, cases=int(said.split()[0]))


def test_the_doors_refuse_hostile_rows_or_leave_finite_scores():
    said = run("hostile_rows.py", "few", level=usable_levels()[0])
    assert said.endswith("refused or finite")


@pytest.mark.slow
@pytest.mark.assault("estimators: hostile rows")
@pytest.mark.parametrize("level", usable_levels())
def test_every_learner_loss_solver_and_feature_map_refuses_hostile_rows_or_leaves_finite_scores(level, tally):
    said = run("hostile_rows.py", "all", level=level)
    assert said.endswith("refused or finite")
    assert int(said.split()[0]) > 5_000
    tally.count(said, cases=int(said.split()[0]))


@pytest.mark.parametrize("name", ["uma", "perceptron", "backward", "flat", "hsvm", "nhsvm", "ssvm", "zero_one dual", "zero_one sgd"])
def test_fits_do_not_see_how_wide_indices_are_nor_whether_zeros_are_stored(name):
    estimator, _ = rows.learners(every=True)[name]
    X, y = rows.plain()
    narrow = sp.csr_array(X)
    wide = rows.valid()["64-bit indices"]
    assert wide.indices.dtype == np.int64

    def scores(Z):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return clone(estimator).fit(Z, y).potentials(X)

    assert np.array_equal(scores(wide), scores(narrow))
    assert np.array_equal(scores(sp.csr_array(X.shape)), scores(np.zeros_like(X)))


def test_a_huge_feature_is_refused_with_its_column():
    X, y = rows.plain()
    X[3, 2] = -1e60
    for Z in (X, sp.csr_array(X)):
        with pytest.raises(DataError, match=r"column 3 holds -1e\+60"):
            AdversarialClassifier().fit(Z, y)
    with pytest.raises(DataError, match=r"column 3 \('c'\) holds"):
        AdversarialClassifier().fit(pd.DataFrame(X, columns=list("abcd")), y)
