"""The list of mutants stays alive: what it changes is there, once, and the tests that it names exist."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path

import pytest
from support.module_files import module_of

ROOT = Path(__file__).resolve().parents[2]
LISTED = module_of(Path(__file__).with_name("listed.py"), "listed_mutants")


@pytest.mark.parametrize("file", sorted({mutant.file for mutant in LISTED.MUTANTS}))
def test_every_mutant_finds_its_text_once(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    lost = [mutant.old for mutant in LISTED.MUTANTS if mutant.file == file and text.count(mutant.old) != 1]
    assert not lost, f"{file} has changed: mend tests/mutants/listed.py"


def test_every_mutant_names_tests_and_kernels() -> None:
    sources = {path.stem for path in (ROOT / "_ext").rglob("*.pyx")}
    for mutant in LISTED.MUTANTS:
        words = shlex.split(mutant.tests)
        files = words[: words.index("-k")] if "-k" in words else words
        assert files, mutant
        assert all((ROOT / file).exists() for file in files), mutant
        assert len(words) - len(files) in (0, 2), f"pytest takes one expression after -k: {mutant}"
        assert bool(mutant.kernels) == mutant.file.startswith("_ext/"), mutant
        assert set(mutant.kernels.split()) <= sources, mutant
        assert mutant.old != mutant.new, mutant
        assert mutant.equivalent is None or len(mutant.equivalent) > 20, mutant


def test_the_list_covers_what_it_should() -> None:
    named = Counter(mutant[:3] for mutant in LISTED.MUTANTS)
    assert max(named.values()) == 1, "a mutant stands there twice"
    rooms = {"KERNELS": 10, "REFEREE": 5, "RECIPE": 10, "SEARCH": 8, "RECORDS": 5, "REPORTS": 8, "MODELS": 5}
    for room, least in rooms.items():
        assert sum(mutant.equivalent is None for mutant in getattr(LISTED, room)) >= least, room
    assert len(LISTED.MUTANTS) >= 60
