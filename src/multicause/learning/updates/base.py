"""The interface of an update of the components, and the choice of one that serves the other parts."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from multicause.arrays import Array
from multicause.combinations.base import Combination
from multicause.model import Model, Parameters
from multicause.noises.base import Noise
from multicause.parts import Part, resolve
from multicause.posteriors.base import Inference


class Update(Part):
    """How the components W move in an M-step, and which sums over the data it needs for that."""

    #: Whether the bound cannot fall at a fixed temperature, rounding apart.
    monotone = False

    def is_monotone(self, combination: Combination) -> bool:
        """Whether it is so for this combination."""
        return self.monotone

    @abstractmethod
    def missing(self, combination: Combination, noise: Noise) -> list[str]:
        """What these parts lack for this update; nothing if it serves them."""

    @abstractmethod
    def statistics(self, model: Model, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """Sums over rows."""

    @abstractmethod
    def maximize(self, model: Model, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """New components: (H, D)."""


def choose_update(combination: Combination, noise: Noise, update: str | Update | None = None) -> Update:
    """The given update if it serves the parts, or else the first that does, in order of preference."""
    from multicause.learning.updates import NAMES

    candidates = [cls() for cls in NAMES.values()] if update is None else [resolve(update, NAMES, "update", Update)]
    reasons = []
    for candidate in candidates:
        missing = candidate.missing(combination, noise)
        if not missing:
            return candidate
        reasons.append(f"{type(candidate).__name__} lacks {', '.join(missing)}")
    served = [name for name, cls in NAMES.items() if not cls().missing(combination, noise)]
    remedy = f"These serve: {', '.join(map(repr, served))}" if served else "Add what is missing to the part"
    raise ValueError(
        f"No update for {_name(combination)} × {_name(noise)}: {'; '.join(reasons)}. {remedy}; "
        "update=None chooses by itself."
    )


def _name(part: Any) -> str:
    return type(part).__name__


def keep_nonnegative(combination: Combination, components: Array) -> Array:
    """Clamp at zero where the combination asks for it (ET10 §4.1)."""
    return components.clip(0) if combination.nonnegative else components
