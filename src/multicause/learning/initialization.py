"""Where learning starts: first facts about the data, components, and the annealing that suits them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from multicause.arrays import Array
from multicause.engines.base import Blocks, Engine
from multicause.learning.annealing import Annealing, NoAnnealing
from multicause.model import Block, Model, Moments, Parameters
from multicause.parts import resolve

INITS = ("random", "data")


@jax.jit
def _moments(block: Block) -> Moments:
    rows, weights = block.rows.astype(jnp.float64), block.weights.astype(jnp.float64)
    return Moments(weights.sum(), weights @ rows, weights @ rows**2)


def first_moments(engine: Engine, blocks: Blocks) -> Moments:
    """Weighted mean and mean square of each dimension, on the host, in the precision of the data."""
    sums = jax.device_get(engine.sum(_moments, blocks))
    dtype = next(iter(blocks)).rows.dtype
    return Moments(sums.weight, (sums.mean / sums.weight).astype(dtype), (sums.square / sums.weight).astype(dtype))


def starting_parameters(
    model: Model,
    n_components: int,
    moments: Moments,
    X: np.ndarray,
    *,
    init: str | ArrayLike,
    activity: float | ArrayLike | None,
    noise_scale: float | None,
    random: np.random.RandomState,
    n_starts: int,
) -> Parameters:
    """Parameters of all starts before learning, in the dtype of the data; starts differ in their components."""
    with np.errstate(over="ignore", invalid="ignore"):
        scale = float(moments.variance)
    if not np.isfinite(scale):
        raise ValueError(
            f"The largest value of X, {np.abs(X).max():.3g}, is too large to be squared in {X.dtype}. Scale X down."
        )
    if not scale > 0:
        raise ValueError(
            f"All values of X are equal ({X.flat[0]:.6g}), so there are no causes to find. "
            "X needs at least two different values."
        )
    components = [_starting_components(init, model, n_components, moments, X, random) for _ in range(n_starts)]

    def repeated(values: dict[str, np.ndarray]) -> dict[str, Array]:
        return {name: jnp.asarray(np.stack([value] * n_starts), dtype=X.dtype) for name, value in values.items()}

    return Parameters(
        components=jnp.asarray(np.stack(components), dtype=X.dtype),
        prior=repeated(model.prior.initialize(n_components, activity)),
        noise=repeated(model.noise.initialize(moments, noise_scale)),
    )


def _starting_components(
    init: str | ArrayLike,
    model: Model,
    n_components: int,
    moments: Moments,
    X: np.ndarray,
    random: np.random.RandomState,
) -> np.ndarray:
    """Components (H, D) before learning: random of the data's scale, random rows of the data, or the user's."""
    n_features = X.shape[1]
    if isinstance(init, str):
        if init == "random":
            return model.combination.initialize(random, n_components, moments)
        if init == "data":
            chosen = X[random.choice(len(X), n_components, replace=n_components > len(X))]
            return np.abs(chosen) if model.combination.nonnegative else chosen
        raise ValueError(f"Unknown init {init!r}. Known: {', '.join(map(repr, INITS))}, or an array.")
    components = np.asarray(init, dtype=float)
    if components.shape != (n_components, n_features):
        raise ValueError(
            f"init must have shape (n_components, n_features) = ({n_components}, {n_features}); got {components.shape}."
        )
    if not np.isfinite(components).all():
        raise ValueError("init must be finite; it holds NaN or infinity.")
    if model.combination.nonnegative and components.min() < 0:
        raise ValueError(
            f"init must not be negative for {type(model.combination).__name__}, whose components are non-negative; "
            f"its smallest value is {components.min():.6g}."
        )
    return components


def choose_annealing(annealing: str | Annealing | None) -> Annealing:
    """The user's schedule, or none: "auto" needs no temperature, because repair finds the way out of local optima."""
    if annealing is None or annealing == "auto":
        return NoAnnealing()
    chosen = resolve(annealing, {}, "annealing", Annealing)
    chosen.check()
    return chosen
