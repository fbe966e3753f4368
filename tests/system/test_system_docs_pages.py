"""README and the pages of docs/: their files are written, their commands run, and what they say is printed is printed.

A fenced block whose first line names a path (```yaml my/loss/x.yaml) is that file. ```sh blocks are commands, run in order in one folder
for the page; ```sh slow only has to compose. A ```text block after a command holds lines of its output, ```python blocks without a path
are run. Figures are drawn by the command above a ```text block that names some.

README has its commands in blocks without a language. A figure in the comment of a command, "97.72 (1.21)", is what the command prints,
unless "published" stands before it. Presets and `COMPOSED` only have to compose. Commands run as they stand among the long tests; in every
run of the tests, those with figures only have to compose, and others run on `FEWER` splits. The pages `LONG` are among the long tests, too.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from support.nursery import nursery
from support.quick_pages import DRAWN

from advcli.cli import main
from advcli.data.catalogue import stored_set

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```(\w*) ?(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (language, rest of the first line, content) of every fenced block."""
    for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
        yield match[1], match[2], match[3]


def run(words: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    """Run advcli in this process, which saves its start, and return what it printed."""
    capfd.readouterr()
    code = main(words)
    out, err = capfd.readouterr()
    assert code == 0, f"{shlex.join(words)}\n{out}{err}"
    assert "Traceback" not in err
    return out + err


FIGURE = re.compile(r"\d+\.\d+ \(\d+\.\d+\)")

# How commands of README begin whose options only have to compose: slow ones, launchers and limits, which have tests of their own.
COMPOSED = (
    "advcli dataset=digits loss=zero_one ",
    "advcli bench ",
    "advcli +experiment=",
    "advcli -m dataset=iris,wine loss=zero_one,cs ",
    "advcli -m dataset=iris,digits limits.",
)
# Commands that read what another command, which is not run here, has written.
READERS = (
    "advcli report results=",
    "advcli check results=",
    "advcli verify results=",
    "advcli certify model=",
    "advcli export ",
    "advcli drop ",
)
# In the place of 20 splits, each with a search, where the figures are not compared.
FEWER = ["protocol.n_splits=2", "protocol.search=first_split"]
# Pages whose commands take more than some seconds together.
LONG = ("extending", "notebook", "outside")
CSV = {"label": ("low", "high"), "kind": ("cat", "dog", "hawk", "owl")}
TREE = "parent,child\nanimal,mammal\nanimal,bird\nmammal,cat\nmammal,dog\nbird,hawk\nbird,owl\n"


def commands(block: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands of a block of README and the figures that their comments promise."""
    lines = [line for line in block.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if not line.startswith("advcli"):
            assert line.lstrip().startswith("#") or line.startswith(("make ", "eval ")), f"neither a command nor its comment: {line}"
            continue
        command, _, comment = line.partition("#")
        if number + 1 < len(lines) and lines[number + 1].startswith(" "):
            comment += lines[number + 1]
        yield command.strip(), FIGURE.findall(comment.partition("published")[0])


def composing(command: str) -> list[str]:
    """Return the words that compose a command: the first choice of every sweep, no verb."""
    words = [word for word in shlex.split(command)[1:] if word not in ("-m", "bench")]
    return [*(word if "[" in word else word.partition(",")[0] for word in words), "--cfg", "job"]


def write_csv(path: Path, target: str) -> None:
    """Write 48 rows of two features and a target."""
    lines = [f"size,ears,{target}"]
    for number in range(48):
        values = CSV[target]
        lines.append(f"{2 * (number % 2) + number / 40:.3f},{3 * (number // 2 % 2) - number / 40:.3f},{values[number % len(values)]}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def readme_blocks() -> list[str]:
    return [content for language, _, content in blocks(README) if language == "" and "advcli" in content]


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["few", "whole"])
@pytest.mark.parametrize("number", range(len(readme_blocks())))
def test_commands_of_the_readme(
    number: int, whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADVCLI_PLUGINS", "")
    write_csv(tmp_path / "train.csv", "label")
    write_csv(tmp_path / "held_out.csv", "label")
    (tmp_path / "new.csv").write_text("size,ears\n0.1,0.2\n2.5,3.1\n", encoding="utf-8")
    (tmp_path / "tree.csv").write_text(TREE, encoding="utf-8")
    words = "".join(f"{number},Ann,B-per\n{number},w{number % 4},O\n{number},Rome,B-place\n" for number in range(20))
    (tmp_path / "words.csv").write_text(f"sentence,token,tag\n{words}", encoding="utf-8")
    skipped = []
    for command, figures in commands(readme_blocks()[number]):
        words = shlex.split(command)[1:]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        if options.get("dataset.path") == "my.csv":
            write_csv(tmp_path / "my.csv", options["dataset.target"])
        if command.startswith(READERS):
            assert not figures
        elif f"{command} ".startswith(COMPOSED):
            assert not figures, f"{command} is not run, so nothing holds its figures"
            run(composing(command), capfd)
        elif figures and not whole:
            run(composing(command), capfd)
        elif lacks_data(command):
            skipped.append(command)
        else:
            runs = not words or words[0] == "-m" or "=" in words[0]
            said = run([*words, *(["workers=1"] if "-m" in words else []), *(FEWER if runs and not whole else [])], capfd)
            cells = [line for line in said.splitlines() if re.match(r"(\[\d+/\d+\] )?\w+, [\w ]+: ", line)]
            printed = [FIGURE.findall(line)[0] for line in cells if FIGURE.search(line)]
            assert not figures or printed == figures, f"README promises {figures} of {command}, which prints {printed}"
    if skipped:
        pytest.skip(f"all but the commands on the papers' data, which are not here: {skipped}")


def test_a_stale_figure_is_found() -> None:
    block = "advcli data list        # also: data show NAME\nadvcli dataset=iris   # 1.5\n        # 97.11 (1.78), published 96.3 (3.1)\n"
    assert list(commands(block)) == [("advcli data list", []), ("advcli dataset=iris", ["97.11 (1.78)"])]
    assert composing("advcli -m dataset=iris,wine protocol.metrics=[a,b]") == ["dataset=iris", "protocol.metrics=[a,b]", "--cfg", "job"]
    promised = [figure for text in readme_blocks() for _, figures in commands(text) for figure in figures]
    assert len(promised) >= 6
    assert all(
        not f"{command} ".startswith((*COMPOSED, *READERS)) for text in readme_blocks() for command, found in commands(text) if found
    )


def test_python_of_the_readme() -> None:
    code = "\n".join(content for language, _, content in blocks(README) if language == "python")
    done = nursery().run(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [line for language, _, text in blocks(README) if language == "text" for line in text.splitlines()]


@pytest.mark.slow
def test_the_main_job_gives_the_table_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = run(["+experiment=quickstart", "dataset=iris,wine", "workers=1"], capfd)  # the others take longer
    marked = re.compile(FIGURE.pattern + "(?: [*=])?")
    for name in ("iris", "wine"):
        shown = next(line for line in README.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {name} |"))
        fresh = next(line for line in said.splitlines() if line.startswith(f"{name} "))
        assert len(marked.findall(shown)) == 4
        assert marked.findall(fresh) == marked.findall(shown)


def test_answers_are_five_lines_at_most() -> None:
    """Beside imports and the rows of the page, which one file makes; every answer cites its thread."""
    page = ROOT / "docs" / "answers.md"
    answers = [(language, text) for language, name, text in blocks(page) if language in ("python", "sh") and not name]
    lines = [[line for line in text.splitlines() if line.strip() and not line.startswith(("import ", "from "))] for _, text in answers]
    assert [own for own in lines if len(own) > 5] == []
    asked = page.read_text(encoding="utf-8").split("\n### ")[1:]
    assert len(asked) == len(answers) == 20
    assert [
        text.splitlines()[0] for text in asked if not re.search(r"\]\(https://github.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+\)", text)
    ] == []


def lacks_data(command: str) -> bool:
    """Return whether a command names a data set that is not in the folder of data sets; `fetch` gets it there."""
    named = [stored_set(name) for names in re.findall(r"dataset=([\w,]+)", command) for name in names.split(",")]
    folder = Path(os.environ["ADVCLI_DATA"])
    return any(not (folder / file).is_file() for known in named if known is not None for file in known.files)


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.stem, marks=[pytest.mark.slow] if page.stem in LONG else []) for page in PAGES]
)
def test_everything_on_the_page_works(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADVCLI_PLUGINS", "")
    said, skipped = "", ""
    for (language, name, content), following in pairwise([*blocks(page), ("", "", "")]):
        if name and language != "sh":
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        elif language == "sh":
            said, lines = "", content.replace("\\\n", " ").splitlines()
            for number, line in enumerate(lines, start=1):
                words = shlex.split(line, comments=True)
                if number == len(lines) and following[0] == "text" and "plots/" in following[2]:
                    monkeypatch.setenv(DRAWN, "1")
                else:
                    monkeypatch.delenv(DRAWN, raising=False)
                assert words[0] == "advcli", f"only advcli is run here: {line}"
                if name == "slow":
                    run([*words[1:], "--cfg", "job"], capfd)
                elif lacks_data(line):
                    said, skipped = "skip", line
                else:
                    said += run([*words[1:], *(["workers=1"] if "-m" in words else [])], capfd)
        elif language == "python":
            done = nursery().run(content)
            assert done.returncode == 0, done.stderr
            said = done.stdout
        elif language == "text" and said != "skip":
            missing = [line for line in content.splitlines() if line.strip() and line.strip() not in said]
            assert not missing, f"{page.name} says {missing}, but the output is\n{said}"
    if skipped:
        pytest.skip(f"all but the commands on the papers' data, which are not here: {skipped}")


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if "://" not in target and not (page.parent / target).exists()] == []


def test_the_readme_names_every_page() -> None:
    text = README.read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"docs/{page.name}" not in text] == []
