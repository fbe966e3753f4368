"""Texts as numbers that need no list of the texts: hashes that a float64 holds exactly."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from .typing import Array

BELOW = float(2**48)
"""Every code is a whole number below."""


def text_codes(texts: Any) -> Array:
    """Return a code for every text (n,), the first six bytes of its BLAKE2b digest: equal texts have equal codes, on every machine.

    Examples
    --------
    >>> from advcli.core.text_codes import text_codes
    >>> codes = text_codes(["the", "cat", "the"])
    >>> bool(codes[0] == codes[2]), bool(codes[0] == codes[1])
    (True, False)
    """
    distinct, place = np.unique(np.asarray(texts, dtype=object).astype(str), return_inverse=True)
    digests = (hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()[:6] for text in distinct.tolist())
    codes = np.array([int.from_bytes(digest, "big") for digest in digests], dtype=np.float64)
    return codes[place.ravel()] if len(distinct) else np.zeros(0)
