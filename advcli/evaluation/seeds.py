"""Seeds from named dimensions."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ..results.tables import canonical_json


def derive_seed(seed: int, *dimensions: str | int) -> int:
    """Return a seed in [0, 2^31) that depends on the experiment's seed and on named dimensions only, such as ``"split", "glass", 3``.

    The method is never a dimension of a split or fold, so every method sees the same ones; and no seed depends on how many
    random numbers something else has drawn, so neither order nor number of workers matters.
    """
    digest = hashlib.sha256(canonical_json([int(seed), *dimensions]).encode()).digest()
    return int.from_bytes(digest[:8], "big") % 2**31


@dataclass(frozen=True)
class SplitSeeds:
    """The seeds of one split: `derive_seed` of the experiment's seed, a purpose, the data set and the number of the split."""

    seed: int
    dataset: str
    split: int | str

    def of(self, purpose: str) -> int:
        """Return the seed of one purpose."""
        return derive_seed(self.seed, purpose, self.dataset, self.split)
