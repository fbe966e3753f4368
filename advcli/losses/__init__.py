"""Surrogate losses: one file per family; every module here registers itself on import."""

import importlib
import pkgutil

from .base import AdversarialLoss, Answer, Loss, examples_of, loss_class, loss_names, make_loss, register, registry

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["AdversarialLoss", "Answer", "Loss", "examples_of", "loss_class", "loss_names", "make_loss", "register", "registry"]
