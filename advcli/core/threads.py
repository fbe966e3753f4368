"""Parts of a computation on several threads: what a part gives does not depend on who works on it, and answers keep their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Answer = TypeVar("Answer")

LANES = 64  # rows between two cuts are a multiple of this, so that compiled loops over several rows at once find the same rows side by side


def shared(work: Callable[[Part], Answer], parts: Iterable[Part], threads: int) -> list[Answer]:
    """Return the answers for all parts, in their order: threads gain where ``work`` leaves the GIL, as SciPy's LAPACK does not."""
    listed = list(parts)
    if threads <= 1 or len(listed) < 2:
        return [work(part) for part in listed]
    with ThreadPoolExecutor(min(threads, len(listed))) as pool:
        return list(pool.map(work, listed))


def rows_by(n: int, least: int) -> list[slice]:
    """Return n rows in parts of at least ``least`` rows, rounded up to `LANES`, the rest in the last: cuts do not depend on the threads."""
    step = LANES * -(-max(int(least), 1) // LANES)
    starts = [part * step for part in range(max(1, n // step))]
    return [slice(first, last) for first, last in zip(starts, [*starts[1:], n], strict=True)]
