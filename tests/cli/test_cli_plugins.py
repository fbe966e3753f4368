"""A user's own Python files: found in every process, answered by one line when broken, and part of what a cell's key says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from advcli import plugins
from advcli.cli import main
from advcli.errors import ConfigError
from advcli.evaluation import Cell
from advcli.losses import make_loss

LOSS = """
from advcli.losses import register
from advcli.losses.zero_one import ZeroOneLoss


@register("{name}")
class Mine(ZeroOneLoss):
    pass
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(plugins.FOLDERS, "")
    Path("my/loss").mkdir(parents=True)


def test_a_name_that_the_package_lacks_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("my/loss/first.py").write_text(LOSS.format(name="first"))
    with pytest.raises(ConfigError, match="unknown loss 'first'"):
        make_loss("first", 3)
    plugins.add_folder("my")
    plugins.add_folder("my")
    assert os.environ[plugins.FOLDERS] == str(Path("my").absolute())
    assert type(make_loss("first", 3)).__name__ == "Mine"
    # imported once: the class stays the same
    assert type(make_loss("first", 3)) is type(make_loss("first", 4))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\ny = undefined\n", "broken.py, line 2: NameError: name 'undefined' is not defined"),
        ("x = 1\ndef f(:\n", "broken.py, line 2: SyntaxError"),
        ("import no_such_module\n", "broken.py, line 1: ModuleNotFoundError"),
    ],
)
def test_a_broken_file_is_one_line(source: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("my/loss/broken.py").write_text(source)
    Path("my/loss/broken.yaml").write_text("# Broken.\nname: broken\n")
    assert main(["--config-dir", "my", "loss=broken", "dataset=iris", "hyper.C=1"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert said in err


def test_workers_find_the_files() -> None:
    Path("my/loss/third.py").write_text(LOSS.format(name="third"))
    Path("my/loss/third.yaml").write_text("# Mine.\nname: third\n")
    words = ["--config-dir=my", "-m", "dataset=iris", "loss=third,zero_one", "hyper.C=1", "protocol.n_splits=2", "workers=2", "name=x"]
    done = subprocess.run([sys.executable, "-m", "advcli", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "iris, third linear: accuracy" in done.stderr


def test_a_change_of_a_file_makes_new_cells() -> None:
    groups = {group: {"name": "x"} for group in ("dataset", "loss", "features", "solver", "protocol")}
    keys = [Cell(**groups).request_key()]
    plugins.add_folder("my")
    assert Cell(**groups).request_key() == keys[0], "without own files keys are what they were"
    for source in ("x = 1\n", "x = 2\n"):
        Path("my/loss/one.py").write_text(source)
        keys.append(Cell(**groups).request_key())
    assert len(set(keys)) == 3
