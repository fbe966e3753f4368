"""The parameter ``loss`` of an estimator: a name, a cost matrix, a class, what makes a loss, or a loss; made for its classes, and saved."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..core.errors import ConfigError
from ..losses import AdversarialLoss, Loss, loss_class, make_loss, matrices, registry


def loss_type(loss: Any) -> type[Loss] | None:
    """Return the class behind the parameter; None for a cost matrix, or a function that makes one."""
    if isinstance(loss, partial):
        return loss_type(loss.func)
    if isinstance(loss, str):
        return loss_class(loss)
    if isinstance(loss, Loss):
        return type(loss)
    return loss if isinstance(loss, type) and issubclass(loss, Loss) else None


def loss_said(loss: Any) -> str:
    """Return the parameter as messages name it."""
    if isinstance(loss, str):
        return loss
    kind = loss_type(loss)
    if kind is None and not callable(loss):
        return "a cost matrix"
    return str(getattr(kind or loss, "__name__", type(loss).__name__))


def given_options(loss: Any, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options of the loss: the keywords of a partial, then ``options``."""
    return {**(loss.keywords if isinstance(loss, partial) else {}), **(options or {})}


def made_loss(loss: Any, options: Mapping[str, Any] | None, labels: list[Any]) -> Loss:
    """Return the loss for these labels, in the order of their codes."""
    k = len(labels)
    if isinstance(loss, Loss):
        if loss.n_classes != k or options:
            raise ConfigError(f"loss={loss_said(loss)} was made for {loss.n_classes} classes, the labels have {k}; give its class instead")
        return loss
    options = dict(options or {})
    if not isinstance(loss, str) and not callable(loss):
        matrix = matrices.from_frame(loss, labels, "loss") if matrices.is_frame(loss) else loss
        loss, options = "general", {"matrix": matrix, **options}
    kind = loss_type(loss)
    if kind is not None:
        options, loss = given_options(loss, options), loss if isinstance(loss, str) else kind
        if "classes" in kind.needs(options):
            options = kind.filled(options, {"classes": [matrices.name_of(label) for label in labels]})
    if isinstance(loss, str):
        return make_loss(loss, k, **options)
    try:
        made = loss(k, **options)
    except TypeError as error:
        raise ConfigError(f"loss={loss_said(loss)}: {error}") from error
    if not isinstance(made, Loss):
        raise ConfigError(
            f"loss={loss_said(loss)} made a {type(made).__name__}; give what makes an advcli.losses.Loss from the classes' number"
        )
    return made


def saved_loss(loss: Any, options: Mapping[str, Any] | None, made: Loss) -> dict[str, Any]:
    """Return the parameters ``loss`` and ``loss_options`` as a model file holds them; ``made`` is the loss of the fit."""
    if isinstance(loss, partial):
        options, loss = given_options(loss, options), loss.func
    if matrices.is_frame(loss) and made.matrix is not None:
        loss = made.matrix.tolist()
    if callable(loss) or isinstance(loss, Loss):
        loss = _registered_name(loss)
    return {"loss": loss, "loss_options": _self_contained(made, options)}


def _registered_name(loss: Any) -> str:
    """Return the name under which a model file keeps a class of losses; `ConfigError` for what no name leads back to."""
    name = getattr(loss, "name", None)
    if isinstance(loss, type) and isinstance(name, str) and name in registry and registry.get(name) is loss:
        return name
    remedy = "register the class (advcli.losses.register) in a file of a folder that ADVCLI_PLUGINS names, and give the class or its name"
    raise ConfigError(f"cannot save this model: loss={loss_said(loss)} has no name that leads back to it; {remedy}")


def _self_contained(loss: Loss, options: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a loss's options with the matrix instead of the file that it was read from."""
    if options is None:
        return None
    contained = dict(options)
    if contained.get("file") is not None and loss.matrix is not None:
        contained |= {"file": None, "classes": None, "matrix": loss.matrix.tolist()}
        if isinstance(loss, AdversarialLoss) and not loss.predicts_classes:
            contained["predictions"] = None if loss.row_names is None else list(loss.row_names)
    if loss.unweighted is not loss and contained.get("options"):
        contained["options"] = _self_contained(loss.unweighted, contained["options"])
    return contained
