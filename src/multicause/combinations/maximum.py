"""Causes of which the strongest wins: MCA08 eq. 3, ET10 eq. 29."""

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.combinations.base import Combination, random_positive
from multicause.model import Moments
from multicause.posteriors.state_tree import StateTree

# Sharpness that stands for infinity: one rounding apart, two weights are already told apart with certainty,
# and equal weights still share their credit equally.
SHARPEST = 1e9
# λ of MCA08 eq. 35.
SLOPE = 0.2


class Maximum(Combination):
    """w̄_d(s, W) = max_h s_h W_hd, with components that are not negative.

    The maximum has no derivative where causes tie, so its credit is smooth, the more so the higher the temperature T
    while learning is annealed. The mean is the hard maximum always.

    Parameters
    ----------
    credit : {"power", "sigmoid"}, default="power"
        ``"power"`` is A^ρ, the derivative of the ρ-norm, with ρ = T/(T − 1) (MCA08 eq. 7–8 and 31; ET10 eq. 30,
        31 and 36). ``"sigmoid"`` is the smoothed Heaviside function of MCA08 eq. 35 with λ = 0.2, a softmax
        where more than two causes compete.
    least_temperature : float, default=1.02
        Credit stays as smooth as at this temperature when the posterior's is lower. The default, ρ = 51, lets weights
        that are equal to a few percent share their credit, so that EM does not jump between winners; one is the limit
        ρ → ∞.
    """

    nonnegative = True

    def __init__(self, *, credit: str = "power", least_temperature: float = 1.02) -> None:
        self.credit = credit
        self.least_temperature = least_temperature

    def combine(self, components: Array, tree: StateTree) -> Array:
        """The maximum of the parent's means and the newest cause's."""
        return tree.grow(jnp.zeros_like(components[:1]), components, jnp.maximum)

    def mean(self, components: Array, causes: Array) -> Array:
        """max_h s_h W_hd, one cause at a time so that no (n, H, D) array arises."""
        mean = jnp.zeros((causes.shape[0], components.shape[1]), dtype=components.dtype)
        for h in range(components.shape[0]):
            mean = jnp.maximum(mean, causes[:, h : h + 1] * components[h])
        return mean

    def pull(self, components: Array, tree: StateTree, values: Array, temperature: Array) -> Array:
        """Credits multiply along the way from a state to a cause, so they are applied while descending the tree.

        With x = log W (power) or W (sigmoid), cause h of state s has the share exp(k x_h) / Σ_{h'∈s} exp(k x_h').
        A^ρ is that share to the power (ρ − 1)/ρ = 1/T, because it is W_h^{ρ−1} / (Σ W_h'^ρ)^{(ρ−1)/ρ}.
        """
        heat = jnp.maximum(temperature, self.least_temperature).astype(components.dtype) - 1
        if self.credit == "power":
            x = jnp.log(jnp.maximum(components, jnp.finfo(components.dtype).tiny))
            sharpness = jnp.minimum((1 + heat) / heat, SHARPEST)
            exponent = (1 / (1 + heat)).astype(components.dtype)
        else:
            x = components
            sharpness = jnp.minimum(SLOPE / heat, SHARPEST)
            exponent = jnp.ones((), dtype=components.dtype)

        def join(parent: tuple[Array, Array], cause: tuple[Array, Array]) -> tuple[Array, Array]:
            """The largest x so far, and Σ exp(k (x − largest)): sums that neither overflow nor vanish."""
            largest = jnp.maximum(parent[0], cause[0])
            scaled = [one[1] * jnp.exp(sharpness * (one[0] - largest)) for one in (parent, cause)]
            return largest, scaled[0] + scaled[1]

        nothing = jnp.full_like(x[:1], -jnp.inf), jnp.zeros_like(x[:1])
        largest, total = tree.grow(nothing, (x, jnp.ones_like(x)), join)  # type: ignore[arg-type]

        log_total = jnp.log(total)

        def shares(cause: int, parents: slice, children: slice) -> tuple[Array, Array]:
            to_cause = sharpness * (x[cause] - largest[children]) - log_total[children]
            to_parent = sharpness * (largest[parents] - largest[children]) + log_total[parents] - log_total[children]
            return jnp.exp(exponent * to_cause), jnp.exp(exponent * to_parent)

        return tree.descend(values, shares)

    def overlap(self, tree: StateTree) -> np.ndarray:
        """One, except in the empty state."""
        return tree.states().max(axis=1, keepdims=True)

    def initialize(self, generator: np.random.RandomState, n_components: int, moments: Moments) -> np.ndarray:
        """Positive numbers around the data's mean."""
        return random_positive(generator, n_components, moments)
