"""One cell: a data set x a method, as plain data, and the key that names its rows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..config.protocol import PLAIN_SPLITS, Protocol
from ..core import plugins
from ..learners import Method
from ..results.tables import GROWING, NUMBERS_VERSION, SCHEMA_VERSION, canonical_json, option_text, plain
from .inputs import GROUPS, by_content, by_name, files_of, path_keys, splits_by_content, splits_by_name


@dataclass(frozen=True)
class Cell:
    """One data set x one method: plain data, picklable, fit for JSON.

    Parameters
    ----------
    dataset, loss, features, solver : mapping
        Options of the configuration groups of these names. ``solver`` has ``tol`` (relative gap of the reported fits) and
        ``search_tol`` (of the fits of the search).
    protocol : Protocol
        A mapping is read by `Protocol.from_mapping`.
    hyper : mapping
        Fixed hyper-parameters (``C``, ``lambda``, ``gamma``); their search is skipped.
    seed : int
        Seed of the experiment.
    noise : mapping or None
        What corrupts the training labels (group ``noise``); None leaves them as they are.
    arithmetic : str
        One of `advcli.core.arithmetic.ARITHMETICS`.
    """

    dataset: Mapping[str, Any]
    loss: Mapping[str, Any]
    features: Mapping[str, Any]
    solver: Mapping[str, Any]
    protocol: Protocol
    hyper: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    noise: Mapping[str, Any] | None = None
    arithmetic: str = "fast"

    def __post_init__(self) -> None:
        if not isinstance(self.protocol, Protocol):
            object.__setattr__(self, "protocol", Protocol.from_mapping(self.protocol))
        # a cell that uses neither is the one that it was before data sets had these options
        unused = {key for key in ("group", "time") if key in self.dataset and self.dataset[key] is None}
        if unused:
            object.__setattr__(self, "dataset", {key: value for key, value in self.dataset.items() if key not in unused})

    @classmethod
    def of(cls, settings: Any, dataset: Mapping[str, Any] | None = None) -> Cell:
        """Return the cell of a checked configuration, on another data set where one is given."""
        noise = None if settings.noise["name"] == "none" else settings.noise
        groups = (settings.loss, settings.features, settings.solver, settings.protocol)
        return cls(settings.dataset if dataset is None else dataset, *groups, settings.hyper, settings.seed, noise, settings.arithmetic)

    @property
    def in_sweep(self) -> Cell:
        """The cell without what its method does not have and other methods of the sweep do."""
        method = Method.of(self).in_sweep
        return replace(self, loss=method.loss, hyper=method.hyper)

    @property
    def method(self) -> str:
        """Name of the method in tables (`Method.name`)."""
        return Method.of(self).name

    @property
    def options(self) -> str:
        """Options of loss, features, noise, protocol and hyper-parameters in one text: what tells cells of one method apart."""
        values_by_key: dict[str, Any] = {"protocol.name": self.protocol.name}
        if self.arithmetic != "fast":
            values_by_key["arithmetic"] = self.arithmetic
        if self.protocol.rough_per_class is not None:
            rough = ("rough_per_class", "labelled_share", "rough_updates")
            values_by_key |= {f"protocol.{key}": getattr(self.protocol, key) for key in rough}
        if self.protocol.splits not in PLAIN_SPLITS:
            values_by_key["protocol.splits"] = splits_by_name(self.protocol)
        groups = {name: by_name(name, getattr(self, name)) or {} for name in ("loss", "features", "noise")} | {"hyper": self.hyper}
        for group, values in groups.items():
            values_by_key |= {f"{group}.{key}": value for key, value in values.items() if key not in ("name", "description", "learner")}
        return "; ".join(f"{key}={option_text(value)}" for key, value in sorted(values_by_key.items()) if value is not None)

    @property
    def files(self) -> dict[str, dict[str, str]]:
        """The files that its options name, except data files, by dotted key: each ``path`` and the ``sha256`` of its content."""
        return files_of(vars(self))

    @property
    def made_from(self) -> dict[str, Any]:
        """What the cell's file keeps of its inputs beside the data: ``files``, the dotted keys that are ``paths``, and ``plugins``, the
        checksum of a user's Python files.
        """
        inputs = {"files": self.files, "paths": sorted(path_keys(vars(self))), "plugins": plugins.fingerprint()}
        return {name: value for name, value in inputs.items() if value}

    def as_mapping(self) -> dict[str, Any]:
        """Return the cell as plain nested data."""
        return {key: plain(value) for key, value in {**vars(self), "protocol": vars(self.protocol)}.items()}

    def request_key(self) -> str:
        """Return the hash of the configuration alone, which exists even when the data cannot be read."""
        return _key({"dataset": plain(self.dataset), **self._determining()})

    def key(self, dataset: Any, rule: Mapping[str, Any] | None = None) -> str:
        """Return the hash of all that determines a row; ``rule`` is what splits depend on beside the rows, the labels and the protocol.

        The content of the data set counts, not where it was found; the name of the run, the number of workers and the way
        reports test do not, nor do the number of splits and the further metrics: a finished cell may get more of them.
        """
        content: dict[str, Any] = {
            "name": dataset.name,
            "sha256": dataset.sha256,
            "ordered": bool(dataset.ordered),
            "sizes": plain(dataset.sizes),
            "weights": None if dataset.example_weight is None else _digest(dataset.example_weight),
            "costs": None if dataset.costs is None else _digest(dataset.costs),
            "encoding": None if dataset.cells is None else [dataset.encoding.missing, dataset.encoding.max_categories],
            "splits": None if dataset.splits is None else [[_digest(train), _digest(test)] for train, test in dataset.splits],
        }
        if rule:
            content["rule"] = plain(rule)
        determining = self._determining()
        if self.protocol.splits_file is not None:  # the splits of this data set count, in `content`, and not those of others in the file
            determining["protocol"]["splits"] = "file"
        return _key({"data": content, "numbers": NUMBERS_VERSION, **determining})

    def _determining(self) -> dict[str, Any]:
        def spoken(options: Mapping[str, Any]) -> dict[str, Any]:
            return {key: value for key, value in options.items() if key != "description"}

        # a file counts by its content
        loss, features, solver, noise = (by_content(group, getattr(self, group)) for group in GROUPS)

        left_out = (*Protocol.SILENT, *GROWING)
        return {
            "schema": SCHEMA_VERSION,
            "loss": spoken(loss),
            "features": spoken(features),
            "solver": spoken(solver),
            # The rows have the protocol's name (column `options`); its test and level matter to reports only.
            "protocol": {
                key: splits_by_content(self.protocol) if key == "splits" else plain(value)
                for key, value in vars(self.protocol).items()
                if key not in left_out
            },
            "hyper": {key: value for key, value in plain(self.hyper).items() if value is not None},
            "seed": int(self.seed),
            "noise": noise,
            "plugins": plugins.fingerprint(),
            **({} if self.arithmetic == "fast" else {"arithmetic": self.arithmetic}),
        }


def _key(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()[:32]


def _digest(array: Any) -> str:
    contiguous = np.ascontiguousarray(array)
    return hashlib.sha256(str(contiguous.dtype).encode() + contiguous.tobytes()).hexdigest()
