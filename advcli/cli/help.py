"""The pages of ``advcli help`` and ``advcli config``: actions on one screen, groups, choices and keys; the same as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from ..config import meanings
from ..config.words import suggestion, unknown_choice
from ..core.errors import EXIT_CODES, ConfigError, error_classes
from ..results.provenance import package_version
from . import actions
from .console import columns, filled

USAGE = "advcli [ACTION] [KEY=VALUE ...] [FLAGS]"
ABOUT = "train, select, compare, certify multiclass surrogate losses"
START = (
    ("advcli dataset=iris loss=zero_one", "one method on one data set"),
    ("advcli -m dataset=iris,wine loss=zero_one,cs", "a sweep over every combination"),
    ("advcli +experiment=quickstart", "a sweep that is ready to run"),
)
FLAGS = (
    ("-m, --multirun", "run every combination of the values between commas"),
    ("--config-dir FOLDER", "add YAML and Python files of your own"),
    ("--cfg job", "print the composed configuration; nothing runs"),
    ("--json", "with --help or config: the same as JSON, for programs"),
    ("--version", "print the version of advcli"),
    ("--hydra-help", "print the options of Hydra, shell completion among them"),
)


def page(words: Sequence[str]) -> str:
    """Return the page about the words after ``advcli help``, without any the page of all actions; unknown words are a `ConfigError`."""
    if not words:
        return "\n".join(_everything())
    word, group = words[0], words[0].partition("=")[0].lstrip("+")
    if len(words) > 1 and (word not in actions.names() or word in meanings.groups()):
        raise ConfigError("advcli help takes one word: an action, a group, GROUP=CHOICE or a key")
    if word in actions.names():
        return "\n".join([*_action(word), *(["", *_group(word)] if word in meanings.groups() else [])])
    if group in meanings.groups():
        return "\n".join(_choice(group, word.partition("=")[2]) if "=" in word else _group(group))
    keys = meanings.named_keys([word])
    if not keys and (having := _choices_with(word)):
        return "\n".join([*filled(f"Key of {' '.join(having)}"), *_keys([key for key in _keys_of_choice(having[0]) if key.name == word])])
    if not keys:
        raise ConfigError(f"advcli help knows no {word!r}; {suggestion(word, topics(), 'advcli help')}")
    return "\n".join(_keys(keys))


def _choices_with(key: str) -> list[str]:
    """Return the choices ``GROUP=CHOICE`` that have a key of its group, such as ``loss.confusion``."""
    group = key.partition(".")[0]
    words = [f"{group}={name}" for name in meanings.choices(group)] if group in meanings.groups() else []
    return [word for word in words if any(each.name == key for each in _keys_of_choice(word))]


def _keys_of_choice(word: str) -> list[meanings.Key]:
    """Return the keys of ``GROUP=CHOICE``."""
    group, _, name = word.partition("=")
    return meanings.keys_of(group, name)


def topics() -> list[str]:
    """Return the words that have a page, choices of groups aside."""
    return [*actions.names(), *meanings.groups(), *(key.name for key in meanings.named_keys())]


def configuration() -> str:
    """Return a line for each key: its default and the first sentence of its meaning."""
    named = [(f"{key.name}={key.default}", meanings.first_sentence(key.meaning)) for key in meanings.named_keys() if key.meaning]
    return "\n".join(columns(named))


def help_document() -> dict[str, Any]:
    """Return what ``advcli --help`` and the pages of all actions say, as plain data."""
    listed = sorted(((name, actions.get(name)) for name in actions.names()), key=lambda item: item[1].place)
    described = [
        {
            "action": name,
            "section": kind.section,
            "summary": kind.summary,
            "usage": [{"command": f"advcli {words}", "meaning": meaning} for words, meaning in kind.usage],
            "example": kind.example,
            "groups": list(kind.groups),
            "keys": [key.name for key in meanings.named_keys(kind.keys)],
        }
        for name, kind in listed
    ]
    errors = [
        {"code": kind.code, "class": kind.__name__, "exit_code": kind.exit_code, "meaning": " ".join((kind.__doc__ or "").split())}
        for kind in error_classes()
    ]
    return {
        "advcli": package_version(),
        "usage": USAGE,
        "examples": [{"command": command, "meaning": meaning} for command, meaning in START],
        "actions": described,
        "groups": meanings.defaults(),
        "flags": [{"flag": flag, "meaning": meaning} for flag, meaning in FLAGS],
        "exit_codes": [{"code": code, "meaning": meaning} for code, meaning in EXIT_CODES.items()],
        "errors": errors,
    }


def _everything() -> Iterator[str]:
    """Yield the lines of ``advcli --help``."""
    yield f"advcli {package_version()}: {ABOUT}"
    yield f"Usage: {USAGE}"
    yield from ("", "Start here", *columns(START, indent=2))
    kinds = sorted(((name, actions.get(name)) for name in actions.names()), key=lambda item: item[1].place)
    for section, members in groupby(kinds, key=lambda item: item[1].section):
        yield from ("", section)
        yield from columns([(name, kind.summary) for name, kind in members], indent=2, least=12)
    chosen = meanings.defaults()
    yield from ("", "Groups: GROUP=CHOICE sets the choice, +GROUP=CHOICE adds settings to a command")
    shown = [f"{group}={chosen[group]}" for group in meanings.groups() if group in chosen]
    yield from filled("  ".join([*shown, *(f"+{group}" for group in meanings.groups() if group not in chosen)]), indent=2)
    yield from ("", "Flags", *columns(FLAGS, indent=2))
    yield from ("", "More: advcli help ACTION | GROUP | GROUP=CHOICE | KEY (fit, hyper.C)\n      advcli config lists all keys")


def _action(name: str) -> Iterator[str]:
    """Yield the lines about an action: how it is called, an example, its groups and its keys."""
    kind = actions.get(name)
    yield from filled(f"advcli {name}: {kind.summary}")
    yield from ("", "Usage")
    for words, meaning in kind.usage:
        yield f"  advcli {words}"
        yield from filled(meaning, indent=6)
    if kind.example:
        yield from ("", "Example", f"  {kind.example}")
    chosen = meanings.defaults()
    groups = [group for group in kind.groups if group in chosen]
    if groups:
        yield from ("", "Groups (advcli help GROUP lists the choices)")
        yield from columns([(f"{group}={chosen[group]}", f"{len(meanings.choices(group))} choices") for group in groups], indent=2)
    keys = meanings.named_keys(kind.keys)
    if keys:
        yield from ("", "Keys and their defaults", *_keys(keys))


def _group(group: str) -> Iterator[str]:
    """Yield the lines about a group: each choice with the first sentence of its file."""
    chosen = meanings.defaults().get(group)
    plus = "" if chosen else "+"
    default = f", default {chosen}" if chosen else ""
    yield from filled(f"{plus}{group}=CHOICE{default}; advcli help {group}=CHOICE has the options of one")
    yield ""
    yield from columns(
        [(name, meanings.first_sentence(meanings.described(file))) for name, file in meanings.choices(group).items()], indent=2
    )


def _choice(group: str, name: str) -> Iterator[str]:
    """Yield the lines about a choice: the description of its file and its options."""
    files = meanings.choices(group)
    if name not in files:
        raise unknown_choice(group, name, files)
    plus = "" if group in meanings.defaults() else "+"
    yield f"{plus}{group}={name}"
    yield from filled(meanings.described(files[name]), indent=2)
    keys = meanings.keys_of(group, name)
    if keys:
        yield ""
        yield from _keys(keys)


def _keys(keys: Sequence[meanings.Key]) -> Iterator[str]:
    for key in keys:
        yield f"  {key.name}" + (f"={key.default}" if key.default else "")
        if key.meaning:
            yield from filled(key.meaning, indent=6)
