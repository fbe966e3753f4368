"""One number of the command line, or of a file, asks for more than any machine has: refused before it is asked for."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MEMORY = 4 * 2**30
"""Address space of the process in bytes; compiled libraries alone take some of it."""


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


@pytest.mark.slow
@pytest.mark.assault("command lines: one number too large")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dataset.target=y", "dataset.cut=equal_width", "dataset.n_classes=1000000000"], "a whole number from 2 to 10000"),
        (["dataset.target=y", "dataset.cut=equal_frequency", "dataset.n_classes=1000000000"], "a whole number from 2 to 10000"),
        (["dataset.path=far.svm", "dataset.format=svmlight"], "row 2 has the index 2000000000"),
        (["dataset=synthetic_blobs", "dataset.rows=1000000000"], "is more than"),
        (["dataset=synthetic_blobs", "dataset.classes=1000000000"], "is too small for dataset.classes"),
        (
            ["dataset.target=y", "dataset.cut=equal_width", "dataset.n_classes=3", "features=poly", "features.degree=1000000000"],
            "from 1 to 1000",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_amounts_are_refused_within_little_memory(words: list[str], said: str, tmp_path: Path, tally: Any) -> None:
    (tmp_path / "far.svm").write_text("0 1:1\n1 2:1 2000000000:1\n0 3:1\n1 1:2\n")
    (tmp_path / "table.csv").write_text("x,y\n" + "".join(f"{at},{1.5 * at}\n" for at in range(20)))
    given = [] if words[0].startswith("dataset=") else ["dataset=csv", "dataset.path=table.csv"]
    given = [word for word in given if word.partition("=")[0] not in {each.partition("=")[0] for each in words}]
    done = subprocess.run(
        [sys.executable, "-m", "advcli", *given, *words, "hyper.C=1", "name=x"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=limited,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    tally.count(words)


@pytest.mark.slow
@pytest.mark.assault("command lines: one number too large")
def test_a_billion_workers_are_no_more_than_the_cells(tmp_path: Path, tally: Any) -> None:
    words = ["-m", "dataset=iris", "loss=zero_one,cs", "workers=1000000000", "protocol.n_splits=1", "hyper.C=1", "name=x", "quiet=true"]
    done = subprocess.run([sys.executable, "-m", "advcli", *words], cwd=tmp_path, preexec_fn=limited, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "results" / "x" / "runs.csv").read_text().splitlines()) > 2
    tally.count(words)
