"""Docstrings of learners that say each parameter themselves: what a class writes "As in `Base`" is filled with what the base says."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_BORROWED = re.compile(r"^As in `(\w+)`(?:[;.] ?(.*))?$", re.DOTALL)


@dataclass(frozen=True)
class Described:
    """One entry of a section: its names, the type behind the colon, and the indented text below."""

    names: tuple[str, ...]
    kind: str
    text: str

    def __str__(self) -> str:
        """Return it as it stands in a docstring."""
        head = ", ".join(self.names) + (f" : {self.kind}" if self.kind else "")
        return "\n".join([head, *(f"    {line}" if line else "" for line in self.text.splitlines())])


def completed(cls: type, known: Mapping[str, type]) -> str | None:
    """Return the docstring of a class with every parameter of its ``__init__`` described.

    Parameters
    ----------
    cls : type
    known : mapping
        Classes by name, from which entries may be taken.

    Returns
    -------
    str or None
        None for a class without a docstring, as under ``python -OO``.
    """
    doc = cls.__dict__.get("__doc__")
    if doc is None:
        return None
    sections = _sections(inspect.cleandoc(doc))
    own = list(_entries(cls, known, 0))
    sections["Parameters"] = "\n".join(map(str, own)) if own else ""
    first = sections.pop("")
    order = ["Parameters", *(name for name in sections if name != "Parameters")]
    return "\n\n".join([first, *(f"{name}\n{'-' * len(name)}\n{sections[name]}" for name in order if sections[name])])


def _entries(cls: type, known: Mapping[str, type], depth: int) -> Iterator[Described]:
    """Yield an entry for every parameter of a class, from its bases where the class does not describe the parameter."""
    left = [name for name in inspect.signature(cls.__init__).parameters if name != "self"]  # type: ignore[misc]
    bases = [base for base in cls.__mro__[1:] if base.__name__ in known]
    for entry in _written(cls):
        borrowed = _BORROWED.match(entry.text)
        names = tuple(name for name in entry.names if name in left)
        if borrowed and borrowed[1] in known and depth < 5:
            for each in _of(known[borrowed[1]], names, known, depth):
                yield Described(each.names, each.kind, each.text + _addition(borrowed[2], each.names, names))
        elif names:
            yield Described(names, entry.kind, entry.text)
        left = [name for name in left if name not in names]
    for base in bases:
        found = list(_of(base, tuple(left), known, depth)) if depth < 5 else []
        yield from found
        left = [name for name in left if not any(name in entry.names for entry in found)]


def _addition(said: str | None, names: tuple[str, ...], of: tuple[str, ...]) -> str:
    """Return what is said beside "As in": of the parameters that it names, else of all."""
    if not said or (any(f"``{name}``" in said for name in of) and not any(f"``{name}``" in said for name in names)):
        return ""
    return f"\n{said[0].upper()}{said[1:]}"


def _of(cls: type, names: tuple[str, ...], known: Mapping[str, type], depth: int) -> Iterator[Described]:
    for entry in _entries(cls, known, depth + 1):
        shared = tuple(name for name in entry.names if name in names)
        if shared:
            yield Described(shared, entry.kind, entry.text)


def _written(cls: type) -> Iterator[Described]:
    """Yield the entries of the section Parameters that a class writes itself."""
    text = _sections(inspect.cleandoc(cls.__dict__.get("__doc__") or "")).get("Parameters", "")
    waiting: tuple[str, ...] = ()  # names on a line that the next one continues
    for part in re.split(r"\n(?=\S)", text):
        head, _, below = part.partition("\n")
        names, _, kind = head.partition(" : ")
        waiting += tuple(name.strip() for name in names.split(",") if name.strip())
        if below:
            yield Described(waiting, kind, inspect.cleandoc(below))
            waiting = ()


def _sections(doc: str) -> dict[str, str]:
    """Return the sections of a docstring by name, the summary by the empty one."""
    found, name, start = {}, "", 0
    for match in _SECTION.finditer(doc):
        found[name] = doc[start : match.start()].strip("\n")
        name, start = match[1], match.end()
    return {**found, name: doc[start:].strip("\n")}
