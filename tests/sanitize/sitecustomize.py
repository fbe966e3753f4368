"""Python with the compiled modules of another build: those of the folder ADVCLI_SANITIZED take the place of the installed ones.

Python runs this file when its folder is on PYTHONPATH, in the processes that tests start as well.
"""

import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path


class Finder:
    """Finds modules of `advcli._ext` in one folder and nowhere else."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def find_spec(self, name, path=None, target=None):
        if not name.startswith("advcli._ext."):
            return None
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            file = self.folder / f"{name.rpartition('.')[2]}{suffix}"
            if file.exists():
                return importlib.util.spec_from_file_location(name, file)
        raise ModuleNotFoundError(f"{name} was not built in {self.folder}", name=name)


if os.environ.get("ADVCLI_SANITIZED"):
    sys.meta_path.insert(0, Finder(os.environ["ADVCLI_SANITIZED"]))
