"""What tests of data sets share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of the papers' data sets; tests that need it are skipped without."""
    folder = os.environ.get("ADVCLI_DATA")
    if not folder or not (Path(folder) / "MANIFEST.csv").is_file():
        pytest.skip("set ADVCLI_DATA to the folder of the papers' data sets")
    return Path(folder)
