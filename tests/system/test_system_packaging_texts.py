"""What a visitor of the repository reads first, held to the package."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = re.findall(r"^  version: '(.+)',$", (ROOT / "meson.build").read_text(encoding="utf-8"), re.MULTILINE)[0]


def test_the_citation_is_of_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == VERSION
    assert PROJECT["dynamic"] == ["version"]
    assert cited["license"] == PROJECT["license"]
    assert cited["cff-version"] == "1.2.0"
    assert cited["authors"]
    assert re.search(rf"^## {re.escape(VERSION)}", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert cited["repository-code"] == PROJECT["urls"]["Repository"]
    losses = {path.stem for path in (ROOT / "conf/loss").glob("*.yaml")}
    named = [name for paper in cited["references"] for name in re.findall(r"loss=(\w+)", paper["notes"])]
    assert len(cited["references"]) >= 6
    assert set(named) <= losses


def test_links_of_the_texts_lead_somewhere() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = [*re.findall(r"\]\(([^)#]+)\)", text), *re.findall(r"`((?:docs|tests|conf|\.ci)[\w./]*)`", text)]
    assert len(named) >= 4
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_every_make_target_of_the_texts_is_there() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md", "docs/start/installing.md"):
        named = re.findall(r"(?:^|`)make (?:[A-Z]+=\S+ )?([a-z][\w-]*)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        assert named
        assert [target for target in named if target not in targets] == []


def test_the_extras_of_the_page_are_those_of_the_package() -> None:
    page = (ROOT / "docs/start/installing.md").read_text(encoding="utf-8").split("## Extras")[1].split("##")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == sorted(PROJECT["optional-dependencies"])


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 130


def test_the_workflow_runs_what_is_there() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text(encoding="utf-8"))["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert ".ci/run" in commands
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert [command for command in commands if command.startswith("make ") and command.split()[1] not in targets] == []
    (low,) = (tuple(map(int, part.split("."))) for part in re.findall(r"\d+\.\d+", PROJECT["requires-python"]))
    assert all(low <= tuple(map(int, each.split("."))) for each in jobs["tests"]["strategy"]["matrix"]["python"])
