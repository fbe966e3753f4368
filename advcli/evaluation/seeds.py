"""Seeds from named dimensions."""

from __future__ import annotations

import hashlib

from ..results.tables import canonical_json


def derive_seed(seed: int, *dimensions: str | int) -> int:
    """Return a seed that depends on the experiment's seed and on named dimensions only.

    The method is never a dimension of a split or fold, so every method sees the same ones; and no seed depends on how many
    random numbers something else has drawn, so neither order nor number of workers matters.

    Parameters
    ----------
    seed : int
        The experiment's seed.
    dimensions : str or int
        For example ``"split", "glass", 3``.

    Returns
    -------
    int
        In [0, 2^31), which every library takes as a seed.
    """
    digest = hashlib.sha256(canonical_json([int(seed), *dimensions]).encode()).digest()
    return int.from_bytes(digest[:8], "big") % 2**31
