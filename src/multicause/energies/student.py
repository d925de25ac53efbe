"""The heavy-tailed expert, a product of which is a product of Student-t distributions."""

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
    """E_j(h) = γ_j log(1 + h²), EBM01 eq. 12, with exponents γ_j that are learned.

    A single unit's density is that of h = t/√ν, where t is Student-t distributed with ν = 2γ − 1 degrees of freedom.
    Exponents never become negative; in models of at most as many units as dimensions they stay above ½, without which
    there is no density.

    Parameters
    ----------
    exponent : float, default=1.0
        Starting value of all γ_j.
    learn_exponents : bool, default=True
        Whether the γ_j are learned.
    """

    def __init__(self, *, exponent: float = 1.0, learn_exponents: bool = True) -> None:
        self.exponent = exponent
        self.learn_exponents = learn_exponents

    def validate(self) -> None:
        """The exponent is positive."""
        if not isinstance(self.exponent, Real) or not 0 < self.exponent < float("inf"):
            raise ValueError(f"exponent of Student must be a positive number; got {self.exponent!r}.")

    def initial(self, n_units: int, dtype: Any) -> Shape:
        """All exponents alike."""
        return {"exponents": jnp.full(n_units, self.exponent, dtype)}

    def energy(self, activity: Array, shape: Shape) -> Array:
        """γ_j log(1 + h_j²)."""
        return self._exponents(shape) * jnp.log1p(activity**2)

    def constrain(self, shape: Shape, *, proper: bool) -> Shape:
        """Exponents of at least zero, or of more than one half."""
        least = LEAST_PROPER_EXPONENT + MARGIN if proper else 0.0
        return {"exponents": jnp.maximum(shape["exponents"], least)}

    def log_partition(self, shape: Shape, n_units: int, dtype: Any) -> Array:
        """log(√π Γ(γ − ½) / Γ(γ))."""
        exponents = self._exponents(shape)
        return 0.5 * jnp.log(jnp.pi) + gammaln(exponents - 0.5) - gammaln(exponents)

    def tail_exponents(self, shape: Shape) -> Array | None:
        """Return the exponents 2γ with which the density of each activity falls."""
        return 2 * shape["exponents"]

    def draw(self, key: Array, shape: Shape, n_samples: int, n_units: int, dtype: Any) -> Array:
        """Student-t numbers over the root of their degrees of freedom ν: one coordinate of a bivariate one.

        The squared radius r² of that is known: P(r² > x) = (1 + x)^{−ν/2}. No number has to be rejected, as in drawing
        gamma variables, so that this is quick also for one chain at a time.
        """
        freedom = 2 * self._exponents(shape) - 1
        for_radius, for_angle = jax.random.split(key)
        tail = 1 - jax.random.uniform(for_radius, (n_samples, n_units), dtype)  # never zero
        angle = 2 * jnp.pi * jax.random.uniform(for_angle, (n_samples, n_units), dtype)
        return jnp.sqrt(jnp.expm1(-2 / freedom * jnp.log(tail))) * jnp.cos(angle)

    def _exponents(self, shape: Shape) -> Array:
        exponents = shape["exponents"]
        return exponents if self.learn_exponents else jax.lax.stop_gradient(exponents)
