"""Command lines with a hostile value for every key, and with hostile words: each is refused in a line or does what it says."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support.nursery import nursery

FAST = ["protocol.n_splits=1", "protocol.folds=2", "protocol.stage1.regularisation=[1]", "protocol.stage2=null", "workers=1", "name=x"]
VALUES = """'' null [] {} -1 0 1 1.5 3 nan inf -inf 1e309 1e-320 1000000000 true x [1,x] {a:1} ??? ${oc.env:NOPE} ${name} ${nope:1} ../x
/proc/x 'a\u00a0b' [1 a=b range(5,1) glob(zz*) 1,2 '\u2603' '\\0' "'" [[]] {a:{}} --help @file %d"""
WORDS = """= a= =a -- -x -m --nope +a=1 ~dataset ~nope +dataset=iris dataset dataset= ' " hydra.mode=x dataset=[iris,wine] +experiment=nope
experiment=quickstart +experiment=quickstart,nope hydra.run.dir=/proc/x hydra.sweep.dir=/proc/x hydra/launcher=nope hydra.job.chdir=true
--config-path=/nope --config-name=nope --config-dir=/nope"""
LINES = """
run run
run fit
-m dataset=
-m seed=1,
-m seed=range(5,1)
-m name=a,b
-m results_dir=a,b
-m loss=glob(zz*)
--cfg nope
--info nope
--multirun --help
--version x
fit
fit out=
fit out=/
fit out=.
predict
predict model=/dev/null
predict model=. dataset.path=.
report results=/dev/null
report results=nope
check
check results=nope baseline=nope
verify results=.
verify results=nope
certify
certify model=/dev/null loss=zero_one
bench loss=uma
bench solver=nope
bench dataset=nope
data
data show
data show nope
data fetch nope
data list nope
data check
"""
OF_OTHER_ACTIONS = ("published", "baseline", "junit", "model", "results", "out", "figure")


def keys(config: Any, path: str = "") -> Iterator[str]:
    """Yield the dotted keys of a config, those of groups included."""
    for key, value in config.items():
        name = f"{path}{key}"
        yield name
        if isinstance(value, dict):
            yield from keys(value, f"{name}.")


def trouble(done: subprocess.CompletedProcess[str], folder: Path) -> str:
    """Return in a line what a person would complain about; empty if nothing."""
    said = done.stderr + done.stdout
    if done.returncode not in (0, 1, 2):
        return f"exit code {done.returncode}: {done.stderr[-200:]!r}"
    if "Traceback" in said or "HYDRA_FULL_ERROR" in said:
        return f"a traceback: {said[-200:]!r}"
    if done.returncode == 1 and not re.search("failed|interrupted|not converged", said):
        return f"exit code 1 without a failure: {done.stderr[-200:]!r}"
    if done.returncode != 2:
        return ""
    errors = [line for line in done.stderr.splitlines() if not line.startswith("advcli: warning")]
    if len(errors) != 1 or not errors[0].startswith("advcli: "):
        return f"{len(errors)} lines in the place of one: {done.stderr[-300:]!r}"
    if len(errors[0]) > 1000:
        return f"a line of {len(errors[0])} characters"
    left = [str(path.relative_to(folder)) for path in folder.rglob("*")]
    return f"refused, but it left {sorted(left)[:3]}" if left else ""


def attack(words: list[str], folder: Path) -> str:
    """Run one command line in an empty folder; return what is wrong with its end."""
    folder.mkdir()
    said = trouble(nursery().run(words, folder), folder)
    shutil.rmtree(folder)
    return said


@pytest.mark.slow
@pytest.mark.assault("command lines: a hostile value for a key")
def test_hostile_values(tally: Any, tmp_path: Path) -> None:
    config = yaml.safe_load(nursery().run(["--cfg", "job"]).stdout)
    names = sorted(name for name in keys(config) if not name.startswith(OF_OTHER_ACTIONS))
    cases = [(name, value) for name in names for value in VALUES.split()]
    for at in np.random.default_rng(0).permutation(len(cases))[:1000]:
        word = "=".join(cases[at])
        tally.count(word, attack([*FAST, word], tmp_path / "here"))


@pytest.mark.slow
@pytest.mark.assault("command lines: hostile words")
def test_hostile_words(tally: Any, tmp_path: Path) -> None:
    for word in ["", *WORDS.split()]:
        tally.count(word, attack([*FAST, word], tmp_path / "here"))
    for line in LINES.strip().splitlines():
        tally.count(line, attack([*shlex.split(line), *(FAST if line.startswith("-m") else [])], tmp_path / "here"))


LINE = "advcli: unknown key 'nope'; did you mean name?\n"


@pytest.mark.parametrize(
    ("code", "out", "err", "left", "good"),
    [
        (0, "results/x: 1 cell", "", True, True),
        (2, "", LINE, False, True),
        (2, "", "advcli: warning: C=1 is the smallest value\n" + LINE, False, True),
        (1, "", "advcli: iris, zero_one: failed: singular\n", True, True),
        (2, "", "", False, False),
        (2, "", LINE + LINE, False, False),
        (2, "", "ConfigError: no\n", False, False),
        (2, "", LINE, True, False),
        (1, "", "advcli: something\n", False, False),
        (1, "", "Traceback (most recent call last):\nadvcli: failed\n", False, False),
        (-11, "", "", False, False),
        (137, "", LINE, False, False),
    ],
)
def test_trouble_is_seen(code: int, out: str, err: str, left: bool, good: bool, tmp_path: Path) -> None:
    if left:
        (tmp_path / "results").mkdir()
    assert (trouble(subprocess.CompletedProcess([], code, out, err), tmp_path) == "") == good
