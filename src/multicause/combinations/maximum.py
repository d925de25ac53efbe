"""Causes of which the strongest wins: MCA08 eq. 3, ET10 eq. 29."""

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array, matmul
from multicause.combinations.base import Combination, random_positive
from multicause.model import Moments
from multicause.posteriors.state_tree import StateTree, Step

# Sharpness that stands for infinity: one rounding apart, two weights are already told apart with certainty,
# and equal weights still share their credit equally.
SHARPEST = 1e9
# Decimal exponents that double precision offers for powers, with room for the data that they multiply.
DECIMALS = 250
# Powers must reach down at least to weights that are this many decimals below the largest one in their dimension.
DECIMALS_OF_WEIGHTS = 4
CREDITS = ("power", "sigmoid")
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

    def validate(self) -> None:
        """Known credits, and a temperature that exists."""
        if self.credit not in CREDITS:
            raise ValueError(f"Unknown credit {self.credit!r} of Maximum. Known: {', '.join(map(repr, CREDITS))}.")
        if not self.least_temperature >= 1:
            raise ValueError(f"least_temperature of Maximum must be at least 1; got {self.least_temperature!r}.")

    def combine(self, components: Array, tree: StateTree) -> Array:
        """The maximum of the parent's means and the newest cause's."""
        return tree.grow(
            jnp.zeros_like(components[..., :1, :]),
            lambda parents, step: jnp.maximum(parents, _of_cause(components, step)),
        )

    def mean(self, components: Array, causes: Array) -> Array:
        """max_h s_h W_hd, one cause at a time so that no (n, H, D) array arises."""
        mean = jnp.zeros((causes.shape[0], components.shape[1]), dtype=components.dtype)
        for h in range(components.shape[0]):
            mean = jnp.maximum(mean, causes[:, h : h + 1] * components[h])
        return mean

    def pull(self, components: Array, tree: StateTree, values: Array, temperature: Array) -> Array:
        """Credits are handed down the tree, from a state to its newest cause and to its parent.

        With x = log W (power) or W (sigmoid), cause h has the share exp(k x_h) / Σ_{h'∈s} exp(k x_h') of state s. A^ρ
        is that share to the power (ρ − 1)/ρ = 1/T, because it is W_h^{ρ−1} / (Σ W_h'^ρ)^{(ρ−1)/ρ}. All exponentials
        are taken relative to the largest x of a state, so that they neither overflow nor all vanish.
        """
        heat = jnp.maximum(temperature, self.least_temperature).astype(components.dtype) - 1
        if self.credit == "power":
            x = jnp.log(jnp.maximum(components, jnp.finfo(components.dtype).tiny))
            sharpness = jnp.minimum((1 + heat) / heat, SHARPEST)
            exponent = 1 / (1 + heat)
        else:
            x = components
            sharpness = jnp.minimum(SLOPE / heat, SHARPEST)
            exponent = jnp.ones_like(heat)

        if self.credit == "power" and components.ndim == 2 and self._fits_into_doubles():
            relative = _log_relative(components)
            faint = jnp.sum(relative < -DECIMALS * np.log(10) / sharpness, axis=0)
            # Products cannot tell two vanishing powers of one dimension apart; the tree can.
            return jax.lax.cond(
                jnp.any(faint > 1),
                lambda: _pull_by_tree(x, tree, values, sharpness, exponent),
                lambda: _pull_by_products(relative, tree, values, sharpness, exponent).astype(components.dtype),
            )
        return _pull_by_tree(x, tree, values, sharpness, exponent)

    def _fits_into_doubles(self) -> bool:
        """Whether W^ρ spans all weights that matter within the range of double precision."""
        heat = self.least_temperature - 1
        return DECIMALS * heat >= DECIMALS_OF_WEIGHTS * (1 + heat)

    def overlap(self, tree: StateTree) -> np.ndarray:
        """One, except in the empty state."""
        return tree.states().max(axis=1, keepdims=True)

    def initialize(self, generator: np.random.RandomState, n_components: int, moments: Moments) -> np.ndarray:
        """Positive numbers around the data's mean."""
        return random_positive(generator, n_components, moments)


def _pull_by_tree(x: Array, tree: StateTree, values: Array, sharpness: Array, exponent: Array) -> Array:
    """Credits handed down the tree, with exponentials relative to the largest x of each state: exact in any range."""
    # Exponentials are taken of all states at once; the tree only passes on what costs little.
    first = x[..., :1, :]
    largest = tree.grow(jnp.full_like(first, -jnp.inf), lambda parents, step: jnp.maximum(parents, _of_cause(x, step)))
    lead = tree.grow(jnp.zeros_like(first), lambda _, step: _of_cause(x, step) - largest[..., step.parents, :])
    distance = sharpness * jnp.abs(lead)
    lower, loser = jnp.exp(-distance), jnp.exp(-exponent * distance)

    def add(parents: Array, step: Step) -> Array:
        """Σ exp(k (x − largest)): the sum of the parent is scaled down if the new cause wins."""
        newest = lower[..., step.children, :]
        return jnp.where(lead[..., step.children, :] > 0, parents * newest + 1, parents + newest)

    total = tree.grow(jnp.zeros_like(first), add)
    # The state without causes has no share to give; its total of zero must not become infinite. The barrier keeps
    # the compiler from taking the same powers again for each of several values.
    share = jax.lax.optimization_barrier(jnp.exp(-exponent * jnp.log(jnp.where(total > 0, total, 1))))

    def shares(step: Step) -> tuple[Array, Array]:
        wins, less = lead[..., step.children, :] > 0, loser[..., step.children, :]
        return jnp.where(wins, 1, less), jnp.where(wins, less, 1)

    return tree.descend(values * share, shares)


def _log_relative(components: Array) -> Array:
    """Log of the weights relative to the largest of their dimension, in double precision."""
    largest = jnp.maximum(components.max(axis=0), jnp.finfo(components.dtype).tiny)
    return jnp.log(components.astype(jnp.float64) / largest)


def _pull_by_products(log_relative: Array, tree: StateTree, values: Array, rho: Array, exponent: Array) -> Array:
    """A^ρ as it stands in ET10 eq. 36, W_h^{ρ−1} (Σ_h' s_h' W_h'^ρ)^{(1−ρ)/ρ}: sums over states are matrix products.

    In double precision, whatever the dtype of the data, because W^ρ has a wide range. A power that would vanish is kept
    just above that, so that its cause has the whole credit where it is alone.
    """
    log_relative = jnp.maximum(log_relative, -DECIMALS * np.log(10) / rho)
    states = jnp.asarray(tree.states(), dtype=jnp.float64)
    norms = matmul(states, jnp.exp(rho * log_relative))
    # The state without causes has no credit to give; its norm of zero must not become infinite. The barrier keeps the
    # compiler from taking the same powers again for each of several values.
    powers = jax.lax.optimization_barrier(jnp.exp(-exponent * jnp.log(jnp.where(norms > 0, norms, 1))))
    return jnp.exp(rho * exponent * log_relative) * matmul(states.T, values * powers)


def _of_cause(values: Array, step: Step) -> Array:
    """The values of a step's cause, out of (..., H, D): (..., 1, D)."""
    return values[..., step.cause : step.cause + 1, :]
