"""An input is its content: an edited file is another cell and no rival of the old one; a file at another place is the same one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from advcli.cli import main
from advcli.config.composing import compose_cells
from advcli.config.meanings import choices, keys_of
from advcli.core import plugins
from advcli.core.errors import AdvcliError
from advcli.data import path_names
from advcli.data.labels.noise import PATHS
from advcli.data.registry import sources
from advcli.evaluation import Cell, run_cell, sweep
from advcli.evaluation.inputs import files_of, path_keys
from advcli.learners import learner_names
from advcli.learners import path_names as paths_of_loss
from advcli.results.folder import ResultsFolder

pytestmark = pytest.mark.usefixtures("elsewhere")

SHORT = ["hyper.C=1", "protocol.n_splits=2", "solver.tol=0.01", "report=none"]
IDENTITY, CONFUSED = np.eye(3), np.array([[0.6, 0.3, 0.0], [0.4, 0.7, 0.3], [0.0, 0.0, 0.7]])


def write(matrix: Any, name: str = "C.csv") -> None:
    Path(name).parent.mkdir(exist_ok=True)
    np.savetxt(name, matrix, delimiter=",")


def table(first: float, name: str = "a.csv") -> None:
    rows = [f"{first if node == 0 else node % 5 + 3 * (node % 3)},{'pqr'[node % 3]}" for node in range(30)]
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text("\n".join(["u,kind", *rows, ""]))


def cell(group: str, options: dict[str, Any]) -> Cell:
    groups: dict[str, Any] = {name: {"name": "x"} for name in ("dataset", "features", "solver", "protocol")}
    return Cell(**groups | {"loss": {"name": "zero_one"}} | {group: options})


def declared() -> list[tuple[str, dict[str, Any], str]]:
    """Return every option of a loss or of noise that is a path: its group, options around it or the name of the choice, its name."""
    result: list[tuple[str, dict[str, Any], str]] = [("noise", {"name": "csv"}, name) for name in PATHS]
    for loss in choices("loss"):
        paths = paths_of_loss({"name": loss}) & {key.name.removeprefix("loss.") for key in keys_of("loss", loss)}
        result += [("loss", {"name": loss}, name) for name in sorted(paths)]
    nested = {"name": "weighted", "base": "general", "options": {"file": None}}
    outside = {"name": "mine", "learner": "sklearn", "estimator": "some.Estimator", "options": {"words": [None]}}
    return [*result, ("loss", nested, "options.file"), ("loss", outside, "options.words.0")]


DECLARED = declared()


def whole(group: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a choice that is given by its name: composed here, because Hydra takes long and an import is to be short."""
    if group != "loss" or len(options) > 1:
        return options
    _, (config,) = compose_cells([["dataset=iris", f"loss={options['name']}"]], {})
    loss: dict[str, Any] = config["loss"]
    return loss


def given(options: dict[str, Any], name: str, value: str) -> dict[str, Any]:
    options = json.loads(json.dumps(options))
    *above, last = name.split(".")
    node: Any = options
    for part in above:
        node = node[part]
    node[int(last) if last.isdecimal() else last] = value
    return options


@pytest.mark.parametrize(("group", "options", "name"), DECLARED, ids=lambda each: each if isinstance(each, str) else each["name"])
def test_the_key_of_a_cell_holds_the_content_of_every_file(group: str, options: dict[str, Any], name: str) -> None:
    options = whole(group, options)

    def keys(path: str) -> set[str]:
        made = cell(group, given(options, name, path))
        return {made.request_key(), made.options}

    write(IDENTITY)
    write(CONFUSED, "other/C.csv")
    one, other = keys("C.csv"), keys("other/C.csv")
    assert not one & other
    shutil.copy("C.csv", "other/C.csv")
    Path("link.csv").symlink_to("C.csv")
    assert keys("other/C.csv") == keys(str(Path("C.csv").absolute())) == one
    assert len(keys("link.csv") - one) == 1, "the name for people is the only difference"
    write(CONFUSED)
    assert keys("C.csv") == other
    key = f"{group}.{name}"
    assert files_of({group: given(options, name, "C.csv")}).keys() == {key}


def test_what_is_declared_is_known() -> None:
    names = {loss["name"] for group, loss, _ in DECLARED if group == "loss"}
    assert {"general", "convex", "csosr", "red_th", "adversarial_costs", "uma", "forward", "backward"} <= names
    assert paths_of_loss({"name": "nothing of that name"}) == frozenset()
    assert path_names({"source": "nothing of that name"}) == frozenset()
    assert {"zero_one", "uma"} <= set(learner_names())


@pytest.mark.parametrize("name", sorted(sources()))
def test_a_source_declares_every_option_that_is_a_path(name: str, tmp_path: Path) -> None:
    source = sources()[name]
    for options in source.examples(tmp_path) if source.examples else ():
        absolute = {key for key, value in options.items() if isinstance(value, str) and Path(value).is_absolute()}
        assert absolute <= set(source.paths)
        assert {f"dataset.{key}" for key in absolute} <= path_keys({"dataset": {**options, "source": name}})


FILES = ["loss=zero_one noise=csv noise.path=C.csv", "loss=forward loss.confusion=C.csv", "loss=general loss.file=C.csv"]


@pytest.mark.parametrize("words", FILES)
def test_rows_of_an_edited_file_are_no_rivals_of_the_old_ones(words: str, capfd: pytest.CaptureFixture[str]) -> None:
    ours = ["dataset=iris", *words.split(), *SHORT, "quiet=true"]
    write(IDENTITY if "general" not in words else 1 - IDENTITY)
    assert main([*ours, "name=x"]) == 0
    first = capfd.readouterr().out
    assert main([*ours, "name=x"]) == 0
    assert capfd.readouterr().out == first
    before = Path("results/x/runs.csv").read_bytes()
    write(CONFUSED if "general" not in words else 5 * CONFUSED)
    assert main([*ours, "name=x"]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert "C.csv has changed since these cells of" in line
    assert Path("results/x/runs.csv").read_bytes() == before
    method = pd.read_csv("results/x/runs.csv")["method"][0]
    assert main(["drop", "results=results/x", f"method={method}"]) == 0
    for name in ("x", "fresh"):
        capfd.readouterr()
        assert main([*ours, f"name={name}"]) == 0
        assert capfd.readouterr().out != first
    values = [pd.read_csv(f"results/{name}/runs.csv")["value"].tolist() for name in ("x", "fresh")]
    assert values[0] == values[1]


DATA = ["dataset=csv", "dataset.target=kind", "dataset.name=mine", *SHORT]


def test_rows_of_changed_data_are_no_rivals_of_the_old_ones(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["-m", *DATA, "dataset.path=a.csv", "loss=zero_one,cs", "workers=1", "name=x"]
    table(0.0)
    assert main(words) == 0
    table(99.0)
    for loss in ("zero_one,cs", "ww"):
        capfd.readouterr()
        assert main([*words[:-3], f"loss={loss}", *words[-2:]]) == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert "the data of mine have changed since these cells" in line
        assert "dataset=mine takes the old ones out" in line
    assert main(["drop", "results=results/x", "dataset=mine"]) == 0
    assert main(words) == 0
    table(0.0)
    assert main([*words[:-1], "name=other"]) == 0


def test_data_that_only_a_worker_reads_are_no_rivals_either(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["-m", "dataset=folder", "dataset.name=mine", "dataset.target=kind", "data_dir=data", *SHORT, "workers=1", "name=x"]
    table(0.0, "data/mine.csv")
    assert main([*words, "loss=zero_one,cs"]) == 0
    before = pd.read_csv("results/x/runs.csv")
    table(99.0, "data/mine.csv")
    assert main([*words, "loss=cs,ww"]) == 1
    assert capfd.readouterr().err.count("failed: the data of mine have changed since other cells of the folder were made") == 2
    runs = pd.read_csv("results/x/runs.csv")
    pd.testing.assert_frame_equal(runs.loc[runs["loss"] != "ww", list(before)].reset_index(drop=True), before, check_dtype=False)
    assert runs.loc[runs["loss"] == "ww", "status"].tolist() == ["failed"]


def test_the_same_data_by_another_path_are_the_same_cells(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["-m", *DATA, "workers=1", "name=x", "record.proofs=true"]
    table(0.0)
    assert main([*words, "dataset.path=a.csv", "loss=zero_one"]) == 0
    Path("there").mkdir()
    shutil.move("a.csv", "there/b.csv")
    capfd.readouterr()
    assert main([*words, "dataset.path=there/b.csv", "loss=zero_one,cs"]) == 0
    assert "2 cells, 1 already there" in capfd.readouterr().out
    assert main([*words, f"dataset.path={tmp_path / 'there' / 'b.csv'}", "loss=zero_one,cs", "protocol.n_splits=3"]) == 0
    assert capfd.readouterr().err.count("1 split added") == 2
    shutil.copy("there/b.csv", "a.csv")
    assert main(["verify", "results=results/x"]) == 0
    assert "6 proved, 0 refuted, 0 cannot" in capfd.readouterr().out


def test_rows_of_edited_plug_ins_are_no_rivals_of_the_old_ones() -> None:
    Path("my/loss").mkdir(parents=True)
    source = "from advcli.losses import register\nfrom advcli.losses.zero_one import ZeroOneLoss\n\n\n"
    Path("my/loss/mine.yaml").write_text("name: mine\n")
    file = Path("my/loss/mine.py")
    file.write_text(source + "@register('mine')\nclass Mine(ZeroOneLoss):\n    pass\n")
    plugins.add_folder("my")
    words = ["dataset=iris loss=mine " + " ".join(SHORT)]
    sweep(words, "results/x", workers=1, quiet=True)
    file.write_text(file.read_text() + "# another\n")
    with pytest.raises(AdvcliError, match="Python files of --config-dir have changed since these cells"):
        sweep(words, "results/x", workers=1, quiet=True)
    sweep([words[0].replace("mine", "cs")], "results/x", workers=1, quiet=True)


def test_data_that_change_while_a_cell_waits_are_refused(fakes: Any, tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    folder.prepare({})
    folder.stands_on["blobs"] = "another checksum"
    outcome = run_cell(fakes.cell(), folder, tmp_path)
    assert outcome.status == "failed"
    assert "the data of blobs have changed" in outcome.error


def test_proofs_are_verified_where_the_files_are_now(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    table(0.0, "data/a.csv")
    write(CONFUSED, "data/C.csv")
    write(1 - IDENTITY, "data/costs.csv")
    words = ["-m", *DATA, "dataset.path=data/a.csv", "workers=1", "record.proofs=true"]
    assert main([*words, "loss=zero_one,cs", "noise=csv", "noise.path=data/C.csv", "name=noisy"]) == 0
    assert main([*words, "loss=general", "loss.file=data/costs.csv", "name=costs"]) == 0
    shutil.move("data", "elsewhere")
    for name, number in (("noisy", 4), ("costs", 2)):
        capfd.readouterr()
        assert main(["verify", f"results=results/{name}"]) == 1, "nothing was proved"
        assert f"0 proved, 0 refuted, {number} cannot" in capfd.readouterr().out
        assert main(["verify", f"results=results/{name}", "data_dir=elsewhere"]) == 0
        assert f"{number} proved, 0 refuted, 0 cannot" in capfd.readouterr().out
    write(IDENTITY, "elsewhere/C.csv")
    assert main(["verify", "results=results/noisy", "data_dir=elsewhere"]) == 1
    assert "C.csv holds something else than when the cell was made" in capfd.readouterr().out
    table(1.0, "elsewhere/a.csv")
    assert main(["verify", "results=results/costs", "data_dir=elsewhere"]) == 1
    assert "the data are not the data of the rows" in capfd.readouterr().out
