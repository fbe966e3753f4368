"""What a configuration says to a learner: the options that it has, what selection searches, and how a learner is made of both."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from ..core.errors import IncompatibleError
from ..core.typing import Options


class Configured:
    """Class methods of a learner that a configuration can name; ``loss``, ``features`` and ``solver`` are the groups of these names.

    A learner or a loss may need to know some of these facts of the data beside the rows. ``order`` is a condition on the labels; each other
    fact is an option of that name, filled where the configuration leaves it null: ``classes``, the labels of the classes as text,
    ``confusion``, the confusion matrix behind the labels, and ``hierarchy``, the label graph as ``{"edges": ..., "classes": ...}``.
    """

    name: ClassVar[str]
    paths: ClassVar[tuple[str, ...]] = ()  # options that may name files, whose content a fit depends on

    @classmethod
    @abstractmethod
    def needs(cls, loss: Options) -> frozenset[str]:
        """Return the facts of the data that the learner needs with these options."""

    @classmethod
    def filled(cls, loss: Options, facts: Options) -> dict[str, Any]:
        """Return the options with the facts that `needs` names in the place of null."""
        return {**loss, **{name: facts[name] for name in cls.needs(loss) & facts.keys() if loss.get(name) is None}}

    @classmethod
    @abstractmethod
    def searched(cls, loss: Options, features: Options) -> tuple[str, ...]:
        """Return the hyper-parameters that selection searches: names of `advcli.core.hyper`, the regularisation in place of its views."""

    @classmethod
    def candidates(cls, loss: Options) -> dict[str, tuple[Any, ...]]:
        """Return hyper-parameters of the learner alone, which no protocol has a grid of, and the values that a search tries.

        Each is named by the key of the configuration that fixes it. Values are any plain data; of equally good ones the first is taken.
        """
        return {}

    @classmethod
    def reach(cls, loss: Options) -> dict[str, tuple[float, float]]:
        """Return how far the values of `candidates` that are ordered numbers may go on past an end that wins: smallest and largest."""
        return {}

    @classmethod
    def in_python(cls) -> str:
        """Return how the learner is called in Python."""
        return f"{cls.__name__} ({cls.__module__})"

    @classmethod
    def has_probabilities(cls, loss: Options) -> bool:
        """Tell whether fits with these options have `probabilities`."""
        return False

    @classmethod
    def calibrated(cls, loss: Options) -> type[Any]:
        """Return the class whose fits estimate probabilities as ``loss.calibrate`` says; `IncompatibleError` where there is none."""
        advice = "leave it out: it has probabilities of its own" if cls.has_probabilities(loss) else "choose loss=zero_one"
        wanted = "the potentials of a surrogate loss or a threshold model"
        raise IncompatibleError(f"calibrate={loss['calibrate']}", wanted, f"loss={loss['name']} is none: {advice}")

    @classmethod
    def names_features(cls, loss: Options, features: Options) -> bool:
        """Tell whether the features are part of the name of methods with these options."""
        return True

    @classmethod
    def takes_weights(cls, loss: Options) -> bool:
        """Tell whether fits with these options take example weights."""
        return True

    @classmethod
    @abstractmethod
    def check(cls, loss: Options, features: Options, solver: Options, ordered: bool, n_classes: int | None) -> None:
        """Refuse options without meaning before any work; ``n_classes`` is None while the data are unknown."""

    @classmethod
    @abstractmethod
    def build(
        cls, loss: Options, features: Options, solver: Options, hyper: Mapping[str, float], n_classes: int, seed: int, tol: float
    ) -> Self:
        """Return an unfitted learner at these hyper-parameters, for labels that are codes in [0, n_classes)."""
