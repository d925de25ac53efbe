"""Sums over rows of bounds and free energies, for posteriors that have them for each row."""

from __future__ import annotations

from functools import cached_property

import jax.numpy as jnp

from multicause.arrays import Array, sum_in_double
from multicause.expectations import Inference


class RowTotals(Inference):
    """Expectations of a posterior whose log evidence and free energy are known for each row."""

    @property
    def total_free_energy(self) -> Array:  # type: ignore[override]
        """Free energy, summed over all rows."""
        return sum_in_double(self.row_weights * self.free_energy)

    @property
    def total_bound(self) -> Array:  # type: ignore[override]
        """Bound ⟨log p⟩ + H(q), summed over all rows."""
        return sum_in_double(self.row_weights * self.log_evidence)


class ScaleFreeTotals(Inference):
    """Expectations under a noise without a scale, where the bound is the free energy at every temperature."""

    @cached_property
    def total_bound(self) -> Array:  # type: ignore[override]
        """Free energy F, summed over all rows."""
        return sum_in_double(self.row_weights * self.free_energy)

    @property
    def total_free_energy(self) -> Array:  # type: ignore[override]
        """Free energy F, summed over all rows."""
        return self.total_bound

    @property
    def total_log_likelihood(self) -> Array:  # type: ignore[override]
        """Zero, because no update of a noise needs it."""
        return jnp.zeros((), jnp.float64)

    @property
    def magnitude(self) -> Array:  # type: ignore[override]
        """Absolute value of F, because no larger terms cancel in it."""
        return jnp.abs(self.total_bound)
