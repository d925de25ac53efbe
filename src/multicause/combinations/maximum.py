"""The max rule, by which the strongest active cause determines the mean: MCA08 eq. 3, ET10 eq. 29."""

from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, one_by_one, rows_at
from multicause.combinations.base import Combination, random_positive
from multicause.combinations.credit import pull_by_causes, pull_by_halves, pull_by_levels, pull_by_members
from multicause.compatibility import Rule
from multicause.records import Moments
from multicause.states.state_list import StateList

# Sharpness used for infinity: of two weights that differ by one rounding error, the larger has all credit, and equal
# weights still share their credit equally.
SHARPEST = 1e9
# Number of states up to which an accelerator processes a list state by state.
SHORT = 32
CREDITS = ("power", "sigmoid")
# λ of MCA08 eq. 35.
SLOPE = 0.2


class Maximum(Combination):
    """The max rule w̄_d(s, W) = max_h s_h W_hd, with non-negative components.

    The maximum has no derivative where causes tie, so its credit is smoothed, the more the higher the temperature T
    of the annealing is. The mean is always the exact maximum.

    Parameters
    ----------
    credit : {"power", "sigmoid"}, default="power"
        ``"power"`` is A^ρ, the derivative of the ρ-norm, with ρ = T/(T − 1) (MCA08 eq. 7–8 and 31; ET10 eq. 30,
        31 and 36). ``"sigmoid"`` is the smoothed Heaviside function of MCA08 eq. 35 with λ = 0.2, a softmax
        if more than two causes compete.
    least_temperature : float, default=1.02
        Lowest temperature of the credit, used if the posterior's is lower. With the default, ρ = 51, weights that are
        equal to a few percent share their credit, so that EM does not jump between them; one is the limit ρ → ∞.
    upper : float, optional
        Upper bound of components, and so of means: 1.0 for means that are probabilities. By default there is none.
    """

    rule = Rule.MAXIMUM

    def __init__(self, *, credit: str = "power", least_temperature: float = 1.02, upper: float | None = None) -> None:
        self.credit = credit
        self.least_temperature = least_temperature
        self.upper = upper

    @property
    def bounds(self) -> tuple[float, float]:  # type: ignore[override]
        """Bounds of the components, from zero to the upper bound."""
        return 0.0, np.inf if self.upper is None else float(self.upper)

    def validate(self) -> None:
        """Raise ValueError unless the credit is known, the temperature at least one and the upper bound positive."""
        super().validate()
        if self.credit not in CREDITS:
            name = type(self).__name__
            raise ValueError(f"Unknown credit {self.credit!r} of {name}. Known: {', '.join(map(repr, CREDITS))}.")
        if not self.least_temperature >= 1:
            name = type(self).__name__
            raise ValueError(f"least_temperature of {name} must be at least 1; got {self.least_temperature!r}.")

    def within(self, means: tuple[float, float]) -> "Maximum":
        """Return this rule with the largest mean as upper bound, if it is finite."""
        upper = min(means[1], self.bounds[1])
        return Maximum(
            credit=self.credit, least_temperature=self.least_temperature, upper=upper if np.isfinite(upper) else None
        )

    def combine(self, components: Array, tree: StateList, empty: Array | None = None) -> Array:
        """Return the maximum of the empty state's mean and those of the active causes, for all states: (S, D)."""
        root = jnp.zeros_like(components[:1])
        root = root if empty is None else root + empty
        if not tree.sparsest_first:
            active = jnp.asarray(tree.states(), dtype=bool)[:, :, None]
            return jnp.max(jnp.where(active, components, root), axis=1, initial=-jnp.inf)
        means = jnp.concatenate([components, root])
        return reduce(jnp.maximum, (rows_at(means, members) for members in tree.padded_members().T))

    def shift(self, components: Array, origin: Array) -> Array:
        """Return components relative to the origin, W − o."""
        return components - origin

    def mean(self, components: Array, causes: Array) -> Array:
        """Return max_h s_h W_hd, computed cause by cause, without an array (n, H, D)."""
        mean = jnp.zeros((causes.shape[0], components.shape[1]), dtype=components.dtype)
        for h in range(components.shape[0]):
            mean = jnp.maximum(mean, causes[:, h : h + 1] * components[h])
        return mean

    def pull(self, components: Array, tree: StateList, values: Array, temperature: Array) -> Array:
        """Return the values of all states (..., S, D), summed with the credit of each cause: (..., H, D).

        With x = log W (power) or W (sigmoid), cause h has the share exp(k x_h) / Σ_{h'∈s} exp(k x_h') of state s. A^ρ
        is that share to the power (ρ − 1)/ρ = 1/T, because it is W_h^{ρ−1} / (Σ W_h'^ρ)^{(ρ−1)/ρ}. All exponentials
        are relative to the largest x of a state, so that they neither overflow nor all underflow.
        """
        if tree.max_active == 1:
            return values[..., 1:, :]  # a single active cause has full credit
        pull = pull_by_levels if tree.sparsest_first else pull_by_halves
        if tree.sparsest_first and tree.n_states <= SHORT and not one_by_one():
            pull = pull_by_members
        x, sharpness, exponent = self._shares(components, temperature)
        return pull(x, tree, values, sharpness, exponent)

    def pull_states(self, components: Array, states: Array, values: Array, temperature: Array) -> Array:
        """Return the values of any states (S, H), summed with the credit of each cause, cause by cause."""
        return pull_by_causes(*self._shares(components, temperature), states, values)

    def _shares(self, components: Array, temperature: Array) -> tuple[Array, Array, Array]:
        """Return x, the factor k and the exponent 1/T of the credit, which :meth:`pull` explains."""
        heat = jnp.maximum(temperature, self.least_temperature).astype(components.dtype) - 1
        components = self._strengths(components)
        if self.credit == "power":
            x = jnp.log(jnp.maximum(components, jnp.finfo(components.dtype).tiny))
            sharpness = jnp.minimum((1 + heat) / heat, SHARPEST)
            exponent = 1 / (1 + heat)
        else:
            x = components
            sharpness = jnp.minimum(SLOPE / heat, SHARPEST)
            exponent = jnp.ones_like(heat)
        return x, sharpness, exponent

    def _strengths(self, components: Array) -> Array:
        """Return the numbers of which the largest wins: the components themselves."""
        return components

    def overlap(self, states: Any) -> Any:
        """Return one for each state, except zero for the empty state: (S, 1)."""
        return states.max(axis=1, keepdims=True)

    def initialize(self, generator: np.random.RandomState, n_components: int, moments: Moments) -> np.ndarray:
        """Return positive random numbers around the data's mean: (H, D)."""
        return self.reflect(random_positive(generator, n_components, moments))
