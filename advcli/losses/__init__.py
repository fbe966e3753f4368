"""A surrogate loss is a support function behind one oracle; it knows scores and labels, never rows.

One file a family; a file registers its losses, and the registry imports all files at the first name asked for. The second referee takes
cost matrices of this room and nothing else, so an import of the package brings no surrogate.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .base import AdversarialLoss, Answer, Loss, examples_of, loss_class, loss_names, make_loss, register, registry

__all__ = ["AdversarialLoss", "Answer", "Loss", "examples_of", "loss_class", "loss_names", "make_loss", "register", "registry"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"{__name__}.base"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
