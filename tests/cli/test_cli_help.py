"""The pages of help: every action, group, choice and key, in the width of the terminal, and the words that people use elsewhere."""

from __future__ import annotations

import re
import shlex

import pytest

from advcli.cli import actions, main
from advcli.cli.task import PARTICULAR
from advcli.config import meanings
from advcli.config.composing import compose_cells
from advcli.config.words import unknown_choice

pytestmark = pytest.mark.usefixtures("elsewhere")

WIDTHS = (80, 120)


def said(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capfd.readouterr().out


def refused(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 2
    (line,) = capfd.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"], ["help", "--help"], ["loss=cs", "--help"]])
def test_one_screen_has_every_action_and_group(
    words: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = said(capfd, *words).splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= 80
    for name in actions.names():
        assert sum(line.split()[:1] == [name] for line in lines) == 1
    text = "\n".join(lines)
    for group in meanings.groups():
        assert f"{group}=" in text or f"+{group}" in text


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_the_terminal_and_break_no_word(width: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    topics = [*actions.names(), *meanings.groups(), *meanings.GROUPS, "hyper", "loss=csova", "solver=auto", "dataset=csv"]
    pages = {}
    for columns in (width, 10_000):
        monkeypatch.setenv("COLUMNS", str(columns))
        pages[columns] = {topic: said(capfd, "help", topic) for topic in topics}
    for topic in topics:
        page = pages[width][topic]
        assert page.split() == pages[10_000][topic].split()
        for line in page.splitlines():
            assert len(line) <= width or len(line.split()) == 1, line


@pytest.mark.parametrize("name", actions.names())
def test_an_action_shows_its_keys_and_a_command_that_names_keys_only(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    page = said(capfd, name, "--help")
    assert page == said(capfd, "help", name)
    kind = actions.get(name)
    assert kind.example.startswith(f"advcli {'-m' if name == 'run' else name}")
    assert kind.example in page
    for words, _ in kind.usage:
        assert f"advcli {words}" in page
    known = {key.name: key for key in meanings.named_keys()}
    for key in kind.keys:
        assert any(other == key or other.startswith(f"{key}.") for other in known)
        assert re.search(rf"^  {re.escape(key)}\b", page, re.M)
    for word in shlex.split(kind.example):
        key, equals, _ = word.partition("=")
        assert not equals or key in known or key in meanings.groups() or key in ("method", "path", "target", "classes")


def test_an_action_lists_the_particular_keys_that_it_reads() -> None:
    for key, readers in PARTICULAR.items():
        assert readers == tuple(name for name in actions.names() if key in actions.get(name).keys)


def test_every_key_of_the_default_configuration_has_a_meaning() -> None:
    for key in meanings.named_keys():
        assert key.meaning or key.name.endswith(".name"), key.name
        assert "@package" not in key.meaning


def test_a_key_inherits_its_meaning_and_a_choice_its_keys() -> None:
    base = {key.name: key for key in meanings.keys_of("loss", "csosr")}
    assert {key.name: key for key in meanings.keys_of("loss", "csova")} == base
    tol = next(key for key in meanings.named_keys(["solver"]) if key.name == "solver.tol")
    assert (tol.default, tol.meaning[:9]) == ("0.001", "Certified")


def test_a_choice_of_a_users_folder_is_listed(capfd: pytest.CaptureFixture[str], tmp_path) -> None:
    (tmp_path / "my" / "loss").mkdir(parents=True)
    (tmp_path / "my" / "loss" / "mine.yaml").write_text("# A loss of mine. More.\nname: mine\n# How much.\namount: 2\n")
    assert re.search(r"^  mine +A loss of mine\.$", said(capfd, "help", "loss", "--config-dir", "my"), re.M)
    assert "loss.amount=2\n      How much." in said(capfd, "help", "loss=mine", "--config-dir", "my")


@pytest.mark.parametrize("group", meanings.groups())
def test_other_names_lead_to_the_choice_and_hide_no_other(group: str) -> None:
    for name, file in meanings.choices(group).items():
        top = " ".join(line.lstrip("# ") for line in file.read_text().splitlines() if line.startswith("# Other names"))
        for other in top.removeprefix("Other names: ").rstrip(".").split(", ") if top else ():
            assert other not in meanings.choices(group)
            assert name in meanings.elsewhere(group, other)
            assert name in meanings.elsewhere(group, re.sub("[ -]", "_", other.lower()))
            assert re.search(rf"mean [\w ]*\b{name}\b", str(unknown_choice(group, other, meanings.choices(group))))


WORDS = {
    "hinge": "did you mean cs or llw or ww?",
    "svm": "did you mean cs or linear_svc or svc or ww?",
    "crammer_singer": "did you mean cs?",
    "weston_watkins": "did you mean ww?",
    "logistic_regression": "did you mean logistic?",
    "mae": "did you mean absolute?",
    "zero-one": "did you mean zero_one?",
    "RandomForest": "did you mean random_forest?",
    "zero_on": "did you mean zero_one",
    "qqq": "advcli help loss lists them",
}


@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_people_use_finds_the_loss(word: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert f"unknown loss '{word}'; {WORDS[word]}" in refused(capfd, f"loss={word}")


def test_a_key_of_some_choices_alone_names_them(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "loss.confusion"]) == 0
    said = capfd.readouterr().out
    assert "loss=backward loss=forward loss=uma" in said
    assert "loss.confusion=null" in said


def test_what_help_does_not_know_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert "did you mean protocol.splits" in refused(capfd, "help", "protocol.split")
    assert "did you mean cs" in refused(capfd, "help", "loss=hinge")
    assert "takes one word" in refused(capfd, "help", "loss", "solver")
    assert refused(capfd, "qqq=1") == "advcli: unknown key 'qqq'; advcli help run lists them [ADV002]"
    assert "did you mean help" in refused(capfd, "hepl")


def test_changed_keys_are_those_that_words_change() -> None:
    _, (plain,) = compose_cells([["dataset=iris"]], {})
    assert set(meanings.changed(plain)) == {"name"}  # set for each start
    words = {"dataset": "wine", "protocol.n_splits": 3, "hyper.C": 0.5, "report.page": False, "protocol.stage1.gamma": [1, 2]}
    _, (config,) = compose_cells([words], {})
    changed = {key: value for key, value in meanings.changed(config).items() if key != "name"}
    assert changed == {("dataset.name" if key == "dataset" else key): value for key, value in words.items()} | {"dataset.sizes": None}
