from pathlib import Path

import pytest


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder to run in, without the papers' data and without folders of plug-ins that another test named."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADVCLI_PLUGINS", "")
    monkeypatch.setenv("ADVCLI_DATA", "data")
