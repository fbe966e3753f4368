"""The configuration as a JSON Schema, for editors and programs that write it: every key with its type, default, choices and meaning."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from .meanings import Key, choices, defaults, described, groups, keys_of, named_keys
from .schema import GROUPS, NODES, TOP

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
# of a key without a schema by the type of its default: any number where that is a number
_TYPES_OF_DEFAULTS = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}


def json_schema() -> dict[str, Any]:
    """Return the schema of a composed configuration (``advcli --cfg job``) as plain data.

    A group is an object with an alternative for each of its choices; ``default`` of a group is the choice of the default configuration,
    and a group without one is added to a command by ``+GROUP=CHOICE``, which sets keys of the others: ``x-added`` has its choices.

    Examples
    --------
    >>> from advcli.config.json_schema import json_schema
    >>> seed = json_schema()["properties"]["seed"]
    >>> seed["type"], seed["default"]
    ('integer', 0)
    """
    chosen = defaults()
    top = [key for key in named_keys() if key.name.partition(".")[0] not in chosen]
    properties = _properties(top, {"": TOP, **{f"{name}.": node for name, node in NODES.items()}})
    for group, choice in chosen.items():
        alternatives = [_choice(group, name) for name in choices(group)]
        properties[group] = {"type": "object", "default": choice, "anyOf": alternatives}
    added = {
        group: {name: described(file) for name, file in choices(group).items()}
        for group in groups()
        if group not in chosen and "/" not in group
    }
    return {"$schema": DIALECT, "title": "advcli", "type": "object", "properties": properties, "x-added": added}


def _choice(group: str, name: str) -> dict[str, Any]:
    """Return the alternative of one choice of a group; options of any other name are its own."""
    keys = [Key(key.name.removeprefix(f"{group}."), key.default, key.meaning) for key in keys_of(group, name)]
    properties = _properties(keys, {"": GROUPS[group]})
    return {"title": name, "description": described(choices(group)[name]), "properties": {"name": {"type": "string"}, **properties}}


def _properties(keys: Iterable[Key], schemas: Mapping[str, type]) -> dict[str, Any]:
    """Return keys with dots as nested properties; ``schemas`` has the schema of the keys that begin with a prefix."""
    rules = {f"{prefix}{entry.name}": (entry.type, entry.metadata) for prefix, schema in schemas.items() for entry in fields(schema)}
    nested: dict[str, Any] = {}
    for key in keys:
        *path, name = key.name.split(".")
        level = nested
        for part in path:
            level = level.setdefault(part, {"type": "object"}).setdefault("properties", {})
        level[name] = {**level.get(name, {}), **_property(key, *rules.get(key.name, (None, {})))}
    return nested


def _property(key: Key, annotation: Any, rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of one key: of the type in its own schema, or of the type of its default."""
    value = _value(key.default)
    if annotation is None:
        about = {} if value is None else {"type": _TYPES_OF_DEFAULTS[type(value)]}
    else:
        about = _annotated(annotation.__name__ if isinstance(annotation, type) else str(annotation), rule)
        if about.get("type") in ("string", ["string", "null"]) and value is not None:
            value = key.default
    if value is not None or key.default == "null":
        about["default"] = value
    wanted = f"Valid: {rule['wanted']}." if rule.get("wanted") and not rule.get("choices") else ""
    text = " ".join(part for part in (key.meaning, wanted) if part)
    return about | ({"description": text} if text else {})


def _annotated(kind: str, rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON type of an annotation of a schema, such as ``list[float] | None``."""
    base, optional = kind.removesuffix(" | None"), kind.endswith(" | None")
    if base.startswith("list["):
        items: dict[str, Any] = {"type": _TYPES[base[5:-1]]} | ({"enum": list(rule["choices"])} if rule.get("choices") else {})
        return {"type": ["array", "null"] if optional else "array", "items": items}
    if base.startswith("dict["):
        return {"type": ["object", "null"] if optional else "object"}
    if rule.get("choices"):
        return {"enum": [*rule["choices"], *([None] if optional else [])]}
    return {"type": [_TYPES[base], "null"] if optional else _TYPES[base]}


def _value(text: str) -> Any:
    """Return a default as plain data; None for null and for a key that holds others."""
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text
