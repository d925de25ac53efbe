"""Logistic expert: ICA with sigmoidal outputs, as in Bell and Sejnowski."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from multicause.arrays import Array
from multicause.energies.base import Expert, Shape


class Logistic(Expert):
    """Logistic expert E(h) = −log(σ(h)(1 − σ(h))), EBM01 eq. 11.

    exp(−E) is the standard logistic density, so ∫ exp(−E) dh = 1.
    """

    elementwise = True

    def energy(self, activity: Array, shape: Shape) -> Array:
        """Compute |h| + 2 log(1 + e^{−|h|}), a form that does not overflow."""
        return _energy(activity)

    def log_partition(self, shape: Shape, n_units: int, dtype: Any) -> Array:
        """Return zeros: the density is normalized."""
        return jnp.zeros(n_units, dtype)

    def draw(self, key: Array, shape: Shape, n_samples: int, n_units: int, dtype: Any) -> Array:
        """Draw logistic random numbers."""
        return jax.random.logistic(key, (n_samples, n_units), dtype)


@jax.custom_jvp
def _energy(activity: Array) -> Array:
    size = jnp.abs(activity)
    # log1p is more accurate only where this term is negligible beside the other one, and takes twice as long.
    return size + 2 * jnp.log(1 + jnp.exp(-size))


@_energy.defjvp
def _energy_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    # The derivative is one tanh; automatic differentiation would need an exponential, a division and the sign.
    (activity,), (change,) = primals, tangents
    return _energy(activity), jnp.tanh(activity / 2) * change
