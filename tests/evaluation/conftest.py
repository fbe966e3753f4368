import sys
from pathlib import Path

import pytest
from module_files import module_of


def _load_fakes():
    return sys.modules.get("evaluation_fakes") or module_of(Path(__file__).with_name("fakes.py"), "evaluation_fakes")


@pytest.fixture
def fakes(monkeypatch):
    module = _load_fakes()
    module.install(monkeypatch.setattr)
    module.N_FITS["count"] = 0
    module.LOG.clear()
    return module


@pytest.fixture
def folder(tmp_path):
    from advcli.records import ResultsFolder

    results = ResultsFolder(tmp_path / "results")
    results.prepare({"seed": 0})
    return results
