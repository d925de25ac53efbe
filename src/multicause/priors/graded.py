"""Priors of causes with a few levels: ternary and discrete sparse coding.

G. Exarchakis and J. Lücke, Discrete Sparse Coding, Neural Computation 29 (2017) 2979–3013.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from multicause.arrays import Array
from multicause.compatibility import Expectation, Likelihood, Link, Requirements, Rule, Spread, Support
from multicause.expectations import Inference
from multicause.priors import truncation
from multicause.priors.base import Prior
from multicause.priors.bernoulli import Bernoulli

# Minimum probability of a level, so that log p(s) is finite for every state.
MARGIN = 1e-6
# Levels of states are numbers of eight bits, and mutation adds two of them.
MOST_LEVELS = 64


class Graded(Prior):
    """Independent causes with a few levels, p(s) = Π_h Π_k p_hk^{[s_h = φ_k]}, with learned probabilities p_hk.

    One of the levels is zero, which is a cause that is off. A component is what its cause adds at level one.

    Parameters
    ----------
    levels : tuple of float, default=(0, 1, 2)
        The levels φ_k, different from each other, one of them zero.
    shared : bool, default=False
        Whether all causes have the same probabilities (Exarchakis & Lücke 2017) instead of their own.
    """

    support = Support.LEVELS
    selectable = True
    repairable = True
    requires = Requirements(
        rules=frozenset({Rule.SUM}),
        links=frozenset({Link.MEAN}),
        likelihoods=frozenset({Likelihood.OF_MEANS}),
        spreads=frozenset({Spread.CONSTANT}),
        expectations=frozenset({Expectation.LEVELS}),
    )

    def __init__(self, levels: tuple[float, ...] = (0, 1, 2), *, shared: bool = False) -> None:
        self.levels = levels
        self.shared = shared

    def validate(self) -> None:
        """Raise ValueError unless levels are different finite numbers, one of them zero."""
        name = type(self).__name__
        levels = self.levels
        if not isinstance(levels, tuple) or not all(
            isinstance(level, Real) and not isinstance(level, bool) and np.isfinite(level) for level in levels
        ):
            raise ValueError(f"levels of {name} must be a tuple of numbers, such as (0, 1, 2); got {levels!r}.")
        repeated = sorted({level for level in levels if levels.count(level) > 1})
        if repeated:
            raise ValueError(
                f"levels of {name} must be different from each other, but {', '.join(map(str, repeated))} is repeated "
                f"in {levels!r}. Name each level once; how frequent it is, is learned."
            )
        if len(np.unique(np.asarray(levels, np.float32))) < len(levels):
            raise ValueError(
                f"levels of {name} must differ by more than single precision can tell; got {levels!r}. Leave out "
                "one of those that are nearly equal."
            )
        if len(levels) > MOST_LEVELS:
            raise ValueError(
                f"{name} takes at most {MOST_LEVELS} levels; got {len(levels)}. Use fewer levels, or "
                "SpikeAndSlabCauses."
            )
        if 0 not in levels or len(levels) < 2:
            raise ValueError(
                f"levels of {name} must have zero, the level of a cause that is off, and another one; got {levels!r}."
            )

    @property
    def strengths(self) -> tuple[float, ...]:  # type: ignore[override]
        """Levels other than zero."""
        return tuple(level for level in self.levels if level != 0)

    def initialize(self, n_components: int, activity: ArrayLike | None) -> dict[str, np.ndarray]:
        """Return two active causes per row on average unless ``activity`` is given, at any level with equal chances."""
        active = Bernoulli(shared=self.shared).initialize(n_components, activity)["activity"][:, None]
        off = np.array(self.levels) == 0
        return {"level_probabilities": np.where(off, 1 - active, active / (len(self.levels) - 1))}

    def log_probability(self, states: Array, parameters: dict[str, Array]) -> Array:
        """Return Σ_h log p(s_h) of states (..., H): (...)."""
        log_p = jnp.log(parameters["level_probabilities"])
        return sum(
            (jnp.sum(jnp.where(states == level, log_p[:, k], 0), axis=-1) for k, level in enumerate(self.levels)),
            start=jnp.zeros((), log_p.dtype),
        )

    def log_mass(self, parameters: dict[str, Array], max_active: int) -> Array:
        """Return log P(|s| ≤ max_active), where |s| is the number of causes that are not zero: ()."""
        return truncation.log_mass(self.activity(parameters), max_active)

    def log_probability_of_levels(self, parameters: dict[str, Array]) -> dict[float, Array]:
        """Return log p_hk of all causes, by level: (H,) each."""
        return dict(zip(self.levels, jnp.log(parameters["level_probabilities"]).T, strict=True))

    def activity(self, parameters: dict[str, Any]) -> Any:
        """Return the probability that each cause is not zero: (H,)."""
        return 1 - parameters["level_probabilities"][:, self.levels.index(0)]

    def sample(self, key: Array, parameters: dict[str, Array], n_samples: int) -> Array:
        """Draw the level of each cause."""
        probabilities = parameters["level_probabilities"]
        chosen = jax.random.categorical(key, jnp.log(probabilities), shape=(n_samples, len(probabilities)))
        return jnp.asarray(self.levels, probabilities.dtype)[chosen]

    def statistics(self, inference: Inference) -> dict[str, Array]:
        """Return the expected number of rows with each level of each cause (H, K), and of those that are not zero."""
        counts = inference.level_counts(self.levels)
        off = np.array(self.levels) == 0
        return {"active": jnp.sum(counts[:, ~off], axis=1), "levels": counts}

    def maximize(
        self, parameters: dict[str, Array], statistics: dict[str, Array], weight: Array, max_active: int | None = None
    ) -> dict[str, Array]:
        """Return the expected share of rows with each level."""
        counts, old = statistics["levels"], parameters["level_probabilities"]
        shares = jnp.maximum(counts / jnp.sum(counts, axis=1, keepdims=True), MARGIN)
        if self.shared:
            shares = jnp.broadcast_to(jnp.mean(shares, axis=0), shares.shape)
        return parameters | {"level_probabilities": (shares / jnp.sum(shares, axis=1, keepdims=True)).astype(old.dtype)}

    def fitted(self, parameters: dict[str, Any]) -> dict[str, np.ndarray]:
        """Return the probability of each level of each cause, in the order of ``levels``."""
        return {"level_probabilities_": np.array(parameters["level_probabilities"])}

    def copied(self, parameters: dict[str, Any], source: int, target: int) -> dict[str, Any]:
        """Return parameters in which the target has the probabilities of the source."""
        probabilities = parameters["level_probabilities"].copy()
        probabilities[target] = probabilities[source]
        return parameters | {"level_probabilities": probabilities}


class Ternary(Graded):
    """Independent causes with the levels −1, 0 and 1: one component for both signs (ternary sparse coding).

    Parameters
    ----------
    shared : bool, default=False
        Whether all causes have the same probabilities instead of their own.
    """

    levels = (-1, 0, 1)

    def __init__(self, *, shared: bool = False) -> None:
        self.shared = shared
