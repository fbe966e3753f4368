"""The pages of docs/reference that are made from the code: YAML comments, registries, docstrings, tables of columns.

    python docs/write_reference.py            write all pages anew
    python docs/write_reference.py --check    write nothing; exit code 1 and a line for every page that would change

A page adds no facts: what is wrong or missing in one is mended where the thing is defined.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from omegaconf import OmegaConf

import advcli
from advcli import losses
from advcli.cli import actions
from advcli.config import presets
from advcli.config.meanings import Key, choices, defaults, described, keys_of, named_keys
from advcli.core import errors
from advcli.core.environment import VARIABLES
from advcli.core.files import write_text
from advcli.core.notes import NOTES
from advcli.evaluation import traces
from advcli.features import feature_class, feature_names
from advcli.learners import learner_class
from advcli.reports import across, curves, published_numbers, summary
from advcli.reports.regression import baseline
from advcli.results import tables
from advcli.solvers import solver_names
from advcli.solvers.base import registry as solvers
from advcli.verify import folder as verify

HERE = Path(__file__).resolve().parent / "reference"
HEAD = "<!-- Written by `python docs/write_reference.py`; what stands here is mended in the code that it comes from. -->\n"
CITATION = re.compile(r"[A-Z][\w'-]+(?:(?:, [A-Z][\w'-]+)*,? (?:and|&) [A-Z][\w'-]+| et al\.)?,? \(?(?:19|20)\d\d\b")

NOT_OPTIONS = ("learner", "estimator")
"""Keys of a loss that say what it is and are no options."""
REPEATED = ("dataset.name", "dataset.source", "dataset.file")
"""Keys of a data set that say which one it is."""
PAGES_OF_GROUPS = {"loss": "losses", "features": "features", "solver": "solvers", "protocol": "protocols", "experiment": "presets"}


# ---- Markdown -----------------------------------------------------------------------------------------------------------
def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table and an empty one; none without rows."""
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines, ""] if lines else []


def first_paragraph(docstring: str | None) -> str:
    """Return the first paragraph of a docstring as Markdown, in one line."""
    return " ".join(inspect.cleandoc(docstring or "").split("\n\n")[0].split()).replace("``", "`")


def code(text: str, most: int = 60) -> str:
    """Return a text as code, cut where it is longer than ``most`` characters."""
    return f"`{text}`" if len(text) <= most else f"`{text[: most - 3]}...`"


def key_table(keys: Iterable[Key]) -> list[str]:
    """Return the table of keys; a key without a comment has the meaning of the node above it."""
    keys = list(keys)
    known = {key.name: key.meaning for key in keys}
    rows = (
        [f"`{key.name}`", code(key.default) if key.default else "", key.meaning or known.get(key.name.rpartition(".")[0], "")]
        for key in keys
    )
    return table(["key", "default", "meaning"], rows)


def choice_section(group: str, name: str, level: str = "##") -> Iterator[str]:
    """Yield the section of a choice: its description and the options that it has."""
    yield f"{level} {name}\n"
    yield f"{described(choices(group)[name])}\n"
    yield from key_table(key for key in keys_of(group, name) if key.name.partition(".")[2] not in NOT_OPTIONS)


def column_table(columns: Mapping[str, str]) -> list[str]:
    """Return the table of the columns of a file."""
    return table(["column", "meaning"], ([f"`{name}`", meaning] for name, meaning in columns.items()))


def papers(text: str) -> str:
    """Return the papers that a text cites, a dash for none."""
    return "; ".join(dict.fromkeys(found.replace("(", "") for found in CITATION.findall(text))) or "-"


# ---- the command line ---------------------------------------------------------------------------------------------------
def cli() -> Iterator[str]:
    """Yield the page of the actions."""
    yield "# The command line\n"
    yield "`advcli [ACTION] [KEY=VALUE ...]`: the first word is an action, by default `run`. `advcli help ACTION` prints this, too."
    yield "[The configuration](configuration.md) has all keys, and [exit codes](exit-codes.md) are the same for all actions.\n"
    chosen = defaults()
    for name in sorted(actions.names(), key=lambda name: actions.get(name).place):
        task = actions.get(name)
        yield f"## {name}\n"
        yield f"{first_paragraph(task.__doc__)}\n"
        yield from table(["command", "what it does"], ([f"`advcli {words}`", meaning] for words, meaning in task.usage))
        yield from [f"Example: `{task.example}`\n"] if task.example else []
        groups = [f"[{group}](configuration.md#{group})" for group in task.groups if group in chosen]
        yield from [f"Groups: {', '.join(groups)}.\n"] if groups else []
        yield from key_table(named_keys(task.keys))


def exit_codes() -> Iterator[str]:
    """Yield the page of exit codes and errors."""
    yield "# Exit codes and errors\n"
    yield from table(["code", "meaning"], ([str(code), meaning] for code, meaning in errors.EXIT_CODES.items()))
    yield "## Errors\n"
    yield "The command line prints the text of an error and its code as one line, and ends with the exit code of its class. A code keeps"
    yield "its meaning while texts change. The classes are in `advcli.errors`.\n"
    rows = (
        [kind.code, f"`{kind.__name__}`", f"`{kind.__bases__[0].__name__}`", str(kind.exit_code), first_paragraph(kind.__doc__)]
        for kind in errors.error_classes()
    )
    yield from table(["code", "class", "derives from", "exit code", "meaning"], rows)
    yield "## Notes and warnings\n"
    yield "A note or a warning ends with its code as well; `quiet_notes=[ADV102,ADV117]` leaves out these kinds.\n"
    yield from table(["code", "meaning"], NOTES.items())
    yield "## Warnings in Python\n"
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, UserWarning)]
    yield from table(["warning", "meaning"], ([f"`{kind.__name__}`", first_paragraph(kind.__doc__)] for kind in kinds))


def environment() -> Iterator[str]:
    """Yield the page of environment variables."""
    yield "# Environment variables\n"
    yield from table(["variable", "meaning"], ([f"`{name}`", meaning] for name, meaning in VARIABLES.items()))


# ---- the configuration --------------------------------------------------------------------------------------------------
def configuration() -> Iterator[str]:
    """Yield the page of all keys."""
    yield "# The configuration\n"
    yield "`KEY=VALUE` sets a key. `advcli --cfg job` prints the composed configuration of a command. `null` is no value.\n"
    yield "## Top level\n"
    yield from key_table(key for key in named_keys() if key.name.partition(".")[0] not in defaults())
    for group, page in PAGES_OF_GROUPS.items():
        yield f"## {group}\n"
        yield f"`{'' if group in defaults() else '+'}{group}=NAME`: [{page}]({page}.md).\n"
    for group in ("noise", "report"):
        yield f"## {group}\n"
        for name in choices(group):
            yield from choice_section(group, name, "###")
    yield "## dataset\n"
    yield "`dataset=NAME`: [data sets](data-sets.md). The options that several data sets have:\n"
    known: dict[str, str] = {}
    for name in ("dataset", "columns", "table", "labels", "sequences"):
        keys = [replace(key, name=key.name.replace("base.", "dataset.", 1)) for key in keys_of("base", name)]
        yield f"### {name}\n"
        yield f"{described(choices('base')[name])}\n"
        yield from key_table(key for key in keys if key.name not in known)
        known |= {key.name: key.meaning for key in keys}
    for name in choices("dataset"):
        keys = [key for key in keys_of("dataset", name) if known.get(key.name) != key.meaning and key.name not in REPEATED]
        if keys:
            yield f"### dataset={name}\n"
            yield f"{described(choices('dataset')[name])}\n"
            yield from key_table(keys)
    yield "## hydra/launcher\n"
    yield "`hydra/launcher=NAME` chooses what runs the cells of a sweep.\n"
    for name in choices("hydra/launcher"):
        keys = [
            replace(key, name=key.name.replace("/", ".")) for key in keys_of("hydra/launcher", name) if not key.name.endswith("_target_")
        ]
        yield f"### {name}\n"
        yield f"{described(choices('hydra/launcher')[name])}\n"
        yield from key_table(keys)


# ---- what has a registry ------------------------------------------------------------------------------------------------
def losses_page() -> Iterator[str]:
    """Yield the page of losses and learners."""
    yield "# Losses\n"
    yield "`loss=NAME` chooses what is learned. A *game* is the adversarial surrogate of a cost matrix, a *hinge* another convex surrogate"
    yield "of the scores, a *learner* another algorithm. *Compiled*: compiled loops evaluate the surrogate."
    yield "*Certified*: each fit carries a duality gap. Methods of scikit-learn have no paper here: its pages name them.\n"
    rows = ([f"[{name}](#{name})", *facts_of(file), papers(described(file))] for name, file in choices("loss").items())
    yield from table(["loss", "kind", "compiled", "certified", "in Python", "papers"], rows)
    for name in choices("loss"):
        yield from choice_section("loss", name)


def facts_of(file: Path) -> tuple[str, str, str, str]:
    """Return kind, compiled, certified and how Python names it, of a file of losses."""
    content: Any = OmegaConf.load(file)
    name = str(content.get("name") or file.stem)
    if name in losses.registry:
        made = losses.make_loss(name, 4, **losses.examples_of(losses.loss_class(name), 4)[0])
        what = "game" if isinstance(made, losses.AdversarialLoss) else "hinge"
        return what, "yes" if made.compiled else "no", "yes", f'`AdversarialClassifier(loss="{name}")`'
    learner = learner_class(learner_name(file))
    name = learner.__name__
    python = learner.in_python or (name if name in advcli.__all__ else f"{learner.__module__}.{name}")
    return "learner", "-", "yes" if learner.certified else "no", f"`{python}`"


def learner_name(file: Path) -> str:
    """Return the name of the learner of a file; a file that it inherits from may have it."""
    content: Any = OmegaConf.load(file)
    inherited = [choices("loss")[entry] for entry in content.get("defaults", ()) if entry in choices("loss")]
    return str(content.get("learner") or content.get("name") or learner_name(inherited[0]))


def features() -> Iterator[str]:
    """Yield the page of feature maps."""
    yield "# Features\n"
    yield "`features=NAME` chooses how parameters and rows become scores.\n"
    for name in feature_names():
        kind = feature_class(name)
        if name in choices("features"):
            yield from choice_section("features", name)
        else:
            yield from (f"## {name}\n", f"{first_paragraph(kind.__doc__)} In Python only.\n")
        yield from ["Labels need an order.\n"] if kind.needs_order else []


def solvers_page() -> Iterator[str]:
    """Yield the page of solvers."""
    yield "# Solvers\n"
    yield "`solver=NAME` chooses the algorithm for a surrogate loss. *Box*: it takes `features.moments=box`. *Blocks*: rows may stay on"
    yield "disk. *Smallest gap*: smaller relative gaps take it too long.\n"
    rows = []
    for name in solver_names():
        kind = solvers.get(name)
        gap = f"{kind.precision:g}" if kind.precision else "any"
        rows.append(
            [
                f"[{name}](#{name})",
                *("yes" if yes else "no" for yes in (kind.takes_box, kind.takes_blocks)),
                gap,
                papers(described(choices("solver")[name])),
            ]
        )
    yield from table(["solver", "box", "blocks", "smallest gap", "papers"], rows)
    shared = [replace(key, name=key.name.replace("base.", "solver.")) for key in keys_of("base", "solver")]
    yield from ("## Every solver\n", *key_table(shared))
    for name in solver_names():
        yield from (f"## {name}\n", f"{described(choices('solver')[name])}\n")
        yield from key_table(key for key in keys_of("solver", name) if key not in shared)


def protocols() -> Iterator[str]:
    """Yield the page of protocols."""
    yield "# Protocols\n"
    yield f"`protocol=NAME` chooses splits, standardisation, search and test; the default is `{defaults()['protocol']}`. A protocol has the"
    yield "values of `papers` except where its section lists others.\n"
    yield from choice_section("protocol", "papers")
    known = {key.name: key.default for key in keys_of("protocol", "papers")}
    for name in choices("protocol"):
        if name != "papers":
            yield from (f"## {name}\n", f"{described(choices('protocol')[name])}\n")
            keys = [
                key
                for key in keys_of("protocol", name)
                if key.default and known.get(key.name) != key.default and key.name != "protocol.name"
            ]
            yield from table(["key", "value"], ([f"`{key.name}`", code(key.default, 200)] for key in keys))


def presets_page() -> Iterator[str]:
    """Yield the page of presets."""
    yield "# Presets\n"
    yield "`advcli +experiment=NAME` runs a preset: a sweep with all its settings. `advcli experiment show NAME` estimates its time.\n"
    every = [presets.about(name) for name in presets.names()]
    rows = (
        [f"[{each.name}](#{each.name})", f"`{each.published}`" if each.published else "-", str(each.n_cells), each.title] for each in every
    )
    yield from table(["preset", "published numbers", "cells", "what it computes"], rows)
    for each in every:
        yield from (f"## {each.name}\n", f"{each.description}\n")
        yield f"[Data sets](data-sets.md): {', '.join(f'`{name}`' for name in data_sets(each))}.\n"
        rows = ((key, ",".join(values)) for key, values in each.sweep.items())
        fixed = ((key, each_value if isinstance(each_value, str) else json.dumps(each_value)) for key, each_value in each.fixed.items())
        yield from table(["key", "value"], ([f"`{key}`", code(text, 200)] for key, text in (*rows, *fixed)))


def data_sets(preset: presets.Preset) -> list[str]:
    """Return the data sets of a preset: those that it sweeps over, or that its file and the choices of its sweep set."""
    if "dataset" in preset.sweep:
        return preset.sweep["dataset"]
    files = [choices("experiment")[preset.name]]
    files += [choices(key[1:])[name] for key, names in preset.sweep.items() if key.startswith("+") for name in names]
    entries = [entry for file in files for entry in cast(Any, OmegaConf.load(file)).get("defaults", ()) if isinstance(entry, Mapping)]
    return list(dict.fromkeys(entry["override /dataset"] for entry in entries if "override /dataset" in entry)) or [defaults()["dataset"]]


# ---- files --------------------------------------------------------------------------------------------------------------
def columns() -> Iterator[str]:
    """Yield the page of the columns of result files."""
    yield "# Columns of result files\n"
    files = {
        "runs.csv": tables.RUN_MEANINGS,
        "Imported rows, at the end of runs.csv": tables.IMPORTED_MEANINGS,
        "search.csv": tables.SEARCH_MEANINGS,
        "summary.csv": summary.SUMMARY_MEANINGS,
        "pairs.csv": across.PAIR_MEANINGS,
        "curves.csv": curves.CURVE_MEANINGS,
        "published.csv": published_numbers.PUBLISHED_MEANINGS,
        "verify.csv": verify.VERDICT_MEANINGS,
        "convergence.csv": traces.MEANINGS,
        "A baseline": baseline.BASELINE_MEANINGS,
    }
    for name, columns_of_file in files.items():
        yield f"## {name}\n"
        yield from column_table(columns_of_file)


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "cli": cli,
    "columns": columns,
    "configuration": configuration,
    "environment": environment,
    "exit-codes": exit_codes,
    "features": features,
    "losses": losses_page,
    "presets": presets_page,
    "protocols": protocols,
    "solvers": solvers_page,
}


def page(name: str) -> str:
    """Return the text of a page."""
    return "\n".join([HEAD, *PAGES[name]()]).rstrip() + "\n"


def main(words: Sequence[str]) -> int:
    """Run the command and return its exit code: 0 done, 1 pages differ."""
    stale = 0
    for name in PAGES:
        path, text = HERE / f"{name}.md", page(name)
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        print(f"docs/reference/{name}.md {'is not what the code gives' if '--check' in words else 'written'}")
        if "--check" not in words:
            write_text(path, text)
    return 1 if stale and "--check" in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
