"""Expert defined by a user's function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from multicause.arrays import Array
from multicause.energies.base import Expert, Shape


class FunctionExpert(Expert):
    """Expert with the energy E(h) = function(h), element by element, in JAX.

    Passing the function itself as ``expert`` has the same effect. The density of such a model is not normalized; for
    exact densities derive a class from :class:`multicause.energies.Expert` that implements ``log_partition`` and
    ``draw``. The file of a model with a function names it, and it must be
    passed to :func:`multicause.load`.

    Parameters
    ----------
    function : callable
        Takes an array of activities and returns an array of the same shape and dtype.
    """

    def __init__(self, function: Callable[[Array], Any]) -> None:
        self.function = function

    def validate(self) -> None:
        """Raise ValueError if the function is not callable."""
        if not callable(self.function):
            raise ValueError(f"FunctionExpert needs a function of activities; got {self.function!r}.")

    def energy(self, activity: Array, shape: Shape) -> Array:
        """Evaluate the function."""
        return self.function(activity)
