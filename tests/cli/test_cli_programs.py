"""What programs read: ``--help --json``, ``config --json``, and the codes of errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from advcli.cli import actions, main
from advcli.config import meanings
from advcli.config.composing import compose_cells
from advcli.config.json_schema import json_schema
from advcli.core import errors
from advcli.core.notes import NOTES, code_of

pytestmark = pytest.mark.usefixtures("elsewhere")

CELLS = (
    ["dataset=iris", "loss=cs"],
    ["dataset=csv", "dataset.path=a.csv", "dataset.target=y", "loss=general", "solver=newton", "hyper.C=1"],
    ["dataset=synthetic_ordinal", "loss=absolute", "features=rbf", "protocol=louche2015", "noise=uniform", "limits.seconds=3"],
)


def said(capfd: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(list(words)) == 0
    return json.loads(capfd.readouterr().out)


def refused(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 2
    (line,) = capfd.readouterr().err.splitlines()
    return line


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return json_schema()


def test_the_schema_is_valid_and_has_every_key(schema: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    printed = said(capfd, "config", "--json")
    assert printed["properties"].keys() == schema["properties"].keys()
    assert printed["properties"]["protocol"] == schema["properties"]["protocol"]
    for key in meanings.named_keys():
        level, (*path, name) = schema, key.name.split(".")
        if path and path[0] in meanings.defaults():
            (level,) = [one for one in level["properties"][path[0]]["anyOf"] if one["title"] == meanings.defaults()[path[0]]]
            path = path[1:]
        for part in path:
            level = level["properties"][part]
        if name != "name":
            assert key.meaning in level["properties"][name].get("description", ""), key.name


@pytest.mark.parametrize("words", CELLS, ids=" ".join)
def test_composed_configurations_follow_it(words: list[str], schema: dict[str, Any]) -> None:
    _, (config,) = compose_cells([words], {})
    jsonschema.validate(config, schema)


@pytest.mark.parametrize(
    ("key", "value"),
    [("seed", "x"), ("seed", 1.5), ("quiet", 1), ("limits", {"seconds": "x"}), ("predict", {"unseen": "x"}), ("plugins", [1])],
)
def test_a_value_of_another_type_does_not(key: str, value: Any, schema: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({key: value}, schema)


def test_help_as_json_has_every_action_error_and_exit_code(capfd: pytest.CaptureFixture[str]) -> None:
    document = said(capfd, "--help", "--json")
    assert {entry["action"] for entry in document["actions"]} == set(actions.names())
    assert {entry["code"] for entry in document["errors"]} == {kind.code for kind in errors.error_classes()}
    assert {entry["code"] for entry in document["exit_codes"]} == set(errors.EXIT_CODES)
    assert said(capfd, "help", "--json") == document


def test_each_class_of_errors_has_a_code_of_its_own() -> None:
    codes = [kind.code for kind in errors.error_classes()]
    assert len(codes) == len(set(codes))
    assert all("code" in vars(kind) for kind in errors.error_classes())


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["loss=hinge"], "ADV002"),
        (["seeds=1"], "ADV002"),
        (["nothing"], "ADV002"),
        (["solver.tol=-1"], "ADV003"),
        (["seed=x"], "ADV003"),
        (["dataset=csv", "dataset.path=nothing.csv", "dataset.target=y"], "ADV011"),
        (["model", "show", "nothing.model"], "ADV030"),
        (["report", "results=[nothing]"], "ADV020"),
        (["config", "seed"], "ADV001"),
        (["--help", "--json", "fit"], "ADV001"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_the_line_of_an_error_ends_with_its_code(words: list[str], code: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert refused(capfd, *words).endswith(f" [{code}]")


def test_all_keys_are_listed_as_text(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["config"]) == 0
    text = capfd.readouterr().out
    for key in meanings.named_keys():
        assert not key.meaning or f"{key.name}=" in text


NOISY = ["dataset=csv", "dataset.path=table.csv", "dataset.target=y", "dataset.categorical=auto", "hyper.C=1", "protocol.n_splits=2"]


@pytest.mark.parametrize("multirun", [False, True])
def test_notes_end_with_a_code_that_silences_them(multirun: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = "\n".join(f"{i % 7},{'abc'[i % 3]},{['no', 'yes'][i % 2]}" for i in range(40))
    Path("table.csv").write_text(f"x,colour,y\n{rows}\n", encoding="utf-8")
    words = [*(["-m"] if multirun else []), *NOISY]
    assert main([*words, "name=n"]) == 0
    notes = [line for line in capfd.readouterr().err.splitlines() if "note: " in line]
    assert notes
    assert {code_of(line) for line in notes} <= NOTES.keys()
    codes = ",".join({code_of(line) for line in notes})
    assert main([*words, f"quiet_notes=[{codes}]", "name=m"]) == 0
    assert "note: " not in capfd.readouterr().err
    assert "ADV999" in refused(capfd, *words, "quiet_notes=[ADV999]")
