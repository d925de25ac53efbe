"""An expert of the user's own, given by its value alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from multicause.arrays import Array
from multicause.energies.base import Expert, Shape


class FunctionExpert(Expert):
    """E(h) = function(h), element by element, in JAX. Passing the function itself as ``expert`` does the same.

    The density of such a model is not normalised; for exact densities derive a class from
    :class:`multicause.energies.Expert` that has ``log_partition`` and ``draw``. A model with a function cannot be
    saved, one with a class can.

    Parameters
    ----------
    function : callable
        Takes an array of activities and returns an array of the same shape and dtype.
    """

    def __init__(self, function: Callable[[Array], Any]) -> None:
        self.function = function

    def validate(self) -> None:
        """The function can be called."""
        if not callable(self.function):
            raise ValueError(f"FunctionExpert needs a function of activities; got {self.function!r}.")

    def energy(self, activity: Array, shape: Shape) -> Array:
        """What the function says."""
        return self.function(activity)
