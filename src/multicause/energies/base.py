"""Interface of experts: the energy that one hidden unit contributes, as a function of its activity."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from multicause.arrays import Array
from multicause.parts import Part

Shape = dict[str, Array]


class Expert(Part):
    """Base class of experts: the energy E_j(h_j) of EBM01 eq. 1, element by element, differentiated automatically.

    Learned numbers that belong to the expert, such as exponents, are its *shape*: a dict of arrays with one entry per
    unit. ``log_partition`` and ``draw`` are optional; with both, models of at most as many units as dimensions have an
    exact density and exact samples.
    """

    #: Whether ``energy`` is the same function of each activity, without a shape, for arrays with any order of axes.
    #: Chains of small models are faster then. It is not inherited by classes with another ``energy``.
    elementwise: bool = False
    #: Whether the tails are so heavy that draws may exceed the range of single precision.
    wide_range: bool = False
    #: Optional: ``log_partition(shape, n_units, dtype)`` computes log ∫ exp(−E_j(h)) dh of each unit: (units,).
    log_partition: Any
    #: Optional: ``draw(key, shape, n_samples, n_units, dtype)`` draws independent activities with densities
    #: proportional to exp(−E_j): (n_samples, n_units).
    draw: Any

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        declaring: Any = next(base for base in cls.__mro__ if "elementwise" in vars(base))
        if cls.energy is not declaring.energy:  # its own one, or that of a class beside the one that declares it
            cls.elementwise = False

    def initial(self, n_units: int, dtype: Any) -> Shape:
        """Return initial values of the shape, arrays of length ``n_units``; empty if nothing is learned."""
        return {}

    @abstractmethod
    def energy(self, activity: Array, shape: Shape) -> Array:
        """Compute E_j(h_j) of activities (n, units): (n, units)."""

    def constrain(self, shape: Shape, *, proper: bool) -> Shape:
        """Return the nearest valid shape; ``proper`` requires a finite integral of exp(−E_j) for each unit."""
        return shape

    def tail_exponents(self, shape: Shape) -> Array | None:
        """Return x with exp(−E_j(h)) ~ |h|^(−x) for large |h|: (units,); None if the tails are lighter or unknown."""
        return None

    def offers(self, method: str) -> bool:
        """Return whether this expert implements one of the optional methods."""
        return callable(getattr(self, method, None))
