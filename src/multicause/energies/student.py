"""Heavy-tailed expert; a product of such experts is a product of Student-t distributions."""

from __future__ import annotations

from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from multicause.arrays import Array
from multicause.energies.base import Expert, Shape

# exp(−E) has a finite integral for exponents above one half.
LEAST_PROPER_EXPONENT = 0.5
MARGIN = 1e-3


class Student(Expert):
    """Heavy-tailed expert E_j(h) = γ_j log(1 + h²), EBM01 eq. 12, with learned exponents γ_j.

    A single unit's density is that of h = t/√ν, where t is Student-t distributed with ν = 2γ − 1 degrees of freedom.
    Exponents never become negative; in models of at most as many units as dimensions they stay above ½, below which
    there is no density.

    Parameters
    ----------
    exponent : float, default=1.0
        Initial value of all γ_j.
    learn_exponents : bool, default=True
        Whether the γ_j are learned.
    """

    wide_range = True

    def __init__(self, *, exponent: float = 1.0, learn_exponents: bool = True) -> None:
        self.exponent = exponent
        self.learn_exponents = learn_exponents

    def validate(self) -> None:
        """Raise ValueError if the exponent is not positive."""
        if not isinstance(self.exponent, Real) or not 0 < self.exponent < float("inf"):
            raise ValueError(f"exponent of Student must be a positive number; got {self.exponent!r}.")

    def initial(self, n_units: int, dtype: Any) -> Shape:
        """Return equal exponents for all units."""
        return {"exponents": jnp.full(n_units, self.exponent, dtype)}

    def energy(self, activity: Array, shape: Shape) -> Array:
        """Compute γ_j log(1 + h_j²)."""
        return self._exponents(shape) * jnp.log1p(activity**2)

    def constrain(self, shape: Shape, *, proper: bool) -> Shape:
        """Clip the exponents to at least zero or, if ``proper``, to more than one half."""
        least = LEAST_PROPER_EXPONENT + MARGIN if proper else 0.0
        return {"exponents": jnp.maximum(shape["exponents"], least)}

    def log_partition(self, shape: Shape, n_units: int, dtype: Any) -> Array:
        """Compute log(√π Γ(γ − ½) / Γ(γ))."""
        exponents = self._exponents(shape)
        return 0.5 * jnp.log(jnp.pi) + gammaln(exponents - 0.5) - gammaln(exponents)

    def tail_exponents(self, shape: Shape) -> Array | None:
        """Return the tail exponents 2γ of the density of each activity."""
        return 2 * shape["exponents"]

    def draw(self, key: Array, shape: Shape, n_samples: int, n_units: int, dtype: Any) -> Array:
        """Draw Student-t numbers divided by √ν, as one coordinate of bivariate Student-t vectors.

        The squared radius r² of such a vector has a known distribution: P(r² > x) = (1 + x)^{−ν/2}. Unlike drawing
        gamma variables, this rejects no numbers, so that it is fast for single chains too.
        """
        freedom = 2 * self._exponents(shape) - 1
        for_radius, for_angle = jax.random.split(key)
        tail = 1 - jax.random.uniform(for_radius, (n_samples, n_units), dtype)  # never zero
        angle = 2 * jnp.pi * jax.random.uniform(for_angle, (n_samples, n_units), dtype)
        return jnp.sqrt(jnp.expm1(-2 / freedom * jnp.log(tail))) * jnp.cos(angle)

    def _exponents(self, shape: Shape) -> Array:
        exponents = shape["exponents"]
        return exponents if self.learn_exponents else jax.lax.stop_gradient(exponents)
