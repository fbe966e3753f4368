"""The configs of a sweep, every one of them, from few compositions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

_ABSENT = object()


def compose_all(
    jobs: Sequence[Sequence[str]], compose: Callable[[Sequence[str]], dict[str, Any]], read: Callable[[str], tuple[str, Any] | None]
) -> list[dict[str, Any]]:
    """Return the plain config of every job of a sweep, from few compositions: composing takes longer than a small cell.

    The jobs are all combinations of the values of their positions. Each value is composed once beside the first job's other values,
    which shows the keys that it changes. Where no two positions touch the same keys, a job's config is the first one's with all
    its changes; some jobs are composed in full to confirm it. Otherwise, and for short sweeps, every job is composed. ``read`` returns
    (dotted key, value) of an override that sets one existing key to a scalar, else None.
    """
    values = [len({job[at] for job in jobs}) - 1 for at in range(len(jobs[0]))]
    if 1 + sum(values) + 3 < len(jobs):
        configs = _combine(jobs, compose, read)
        checked = sorted({len(jobs) // 3, len(jobs) // 2, len(jobs) - 1})
        if configs is not None and all(configs[at] == compose(jobs[at]) for at in checked):
            return configs
    return [compose(job) for job in jobs]


def _combine(
    jobs: Sequence[Sequence[str]], compose: Callable[[Sequence[str]], dict[str, Any]], read: Callable[[str], tuple[str, Any] | None]
) -> list[dict[str, Any]] | None:
    first = list(jobs[0])
    base = _leaves(compose(first))

    def effect(position: int, text: str) -> dict[tuple[str, ...], Any]:
        changed = _leaves(compose([*first[:position], text, *first[position + 1 :]]))
        return {path: changed.get(path, _ABSENT) for path in {**base, **changed} if base.get(path, _ABSENT) != changed.get(path, _ABSENT)}

    effects: list[dict[str, dict[tuple[str, ...], Any]]] = []
    owner: dict[tuple[str, ...], int] = {}
    for position in range(len(first)):
        texts = list(dict.fromkeys(job[position] for job in jobs))
        effects_of: dict[str, dict[tuple[str, ...], Any]] = {first[position]: {}}
        if len(texts) > 4:
            # a long list of scalars for one key: two of them show whether anything else depends on it
            pairs = [read(text) for text in texts]
            plain_values = {text: {tuple(pair[0].split(".")): pair[1]} for text, pair in zip(texts, pairs, strict=True) if pair is not None}
            if len(plain_values) == len(texts) and all(effect(position, text) == plain_values[text] for text in (texts[1], texts[-1])):
                effects_of = plain_values
        effects_of |= {text: effect(position, text) for text in texts if text not in effects_of}
        effects.append(effects_of)
        for path in {path for changes in effects_of.values() for path in changes}:
            if owner.setdefault(path, position) != position:
                return None
    if any(owner.get(path[:at], position) != position for path, position in owner.items() for at in range(1, len(path))):
        return None
    configs = []
    for job in jobs:
        leaves = dict(base)
        for position, text in enumerate(job):
            leaves |= effects[position][text]
        configs.append(_nested({path: value for path, value in leaves.items() if value is not _ABSENT}))
    return configs


def _leaves(values: Mapping[str, Any], prefix: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Return path and value of everything that is no mapping with content."""
    leaves: dict[tuple[str, ...], Any] = {}
    for key, value in values.items():
        path = (*prefix, str(key))
        leaves |= _leaves(value, path) if isinstance(value, Mapping) and value else {path: value}
    return leaves


def _nested(leaves: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for path, value in leaves.items():
        node = root
        for key in path[:-1]:
            node = node.setdefault(key, {})
        node[path[-1]] = value
    return root
