import importlib.util
import sys
from pathlib import Path

import pytest


def _load_fakes():
    if "evaluation_fakes" not in sys.modules:
        spec = importlib.util.spec_from_file_location("evaluation_fakes", Path(__file__).with_name("fakes.py"))
        module = importlib.util.module_from_spec(spec)
        sys.modules["evaluation_fakes"] = module
        spec.loader.exec_module(module)
    return sys.modules["evaluation_fakes"]


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
