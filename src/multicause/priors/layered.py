"""The prior of binary causes in layers, the upper part of a Helmholtz machine: TN10 eq. 10.39."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from multicause.arrays import Array
from multicause.compatibility import Capability, Requirements, Support
from multicause.expectations import Inference
from multicause.priors.base import Prior
from multicause.priors.layered_networks import Layers, fantasies, log_bernoulli

# Initial standard deviation of weights between layers.
INITIAL_SPREAD = 0.1


class Layered(Prior):
    """Binary causes, P(v) = Π_a f(g_a)^{v_a} (1 − f(g_a))^{1 − v_a}; g depends on the causes of the layer above.

    The sum over all higher causes has no closed form, so that this prior does not offer ``log_probability``.
    :class:`SingleLayer` is the prior of a single layer.

    ``parameters`` has ``bias_1``, ``bias_2`` … of the layers of causes from the lowest upwards, ``weights_1`` … from
    each layer to the one below it, and ``activity``, how often each lowest cause was found active.

    Parameters
    ----------
    higher : tuple of int, default=(2,)
        Number of causes in each layer above the first one; at least one layer.
    """

    support = Support.LAYERED
    requires = Requirements(capabilities=frozenset({Capability.WAKE_SLEEP}))

    def __init__(self, *, higher: tuple[int, ...] = (2,)) -> None:
        self.higher = higher

    def validate(self) -> None:
        """Raise ValueError unless there is a higher layer, and each one has at least one cause."""
        if not self.higher or any(size < 1 for size in self.higher):
            raise ValueError(f"higher must hold positive numbers of causes, at least one; got {self.higher!r}.")

    def initialize(self, n_components: int, activity: ArrayLike | None) -> dict[str, np.ndarray]:
        """Return two active causes of the lowest layer on average, or the user's ``activity``, and zero weights."""
        activity = np.asarray(min(2 / n_components, 0.5) if activity is None else activity, dtype=float)
        if activity.shape not in ((), (n_components,)) or not ((activity > 0) & (activity < 1)).all():
            raise ValueError(
                f"activity must be one probability strictly between 0 and 1, or one for each of {n_components} causes; "
                f"got {activity!r}."
            )
        activity = np.full(n_components, activity)
        sizes = (n_components, *self.higher)
        record = {"activity": activity, "bias_1": np.log(activity) - np.log1p(-activity)}
        for k, (below, above) in enumerate(itertools.pairwise(sizes), start=1):
            record[f"weights_{k}"] = np.zeros((above, below))
            record[f"bias_{k + 1}"] = np.zeros(above)
        return record

    def layers(self, parameters: dict[str, Array]) -> Layers:
        """Return the generative layers of causes, lowest first."""
        depth = len(self.higher) + 1
        layers = [{"weights": parameters[f"weights_{k}"], "bias": parameters[f"bias_{k}"]} for k in range(1, depth)]
        return (*layers, {"bias": parameters[f"bias_{depth}"]})

    def activity(self, parameters: dict[str, Array]) -> Array:
        """Return how often each lowest cause was found active: (H,)."""
        return parameters["activity"]

    def sample(self, key: Array, parameters: dict[str, Array], n_samples: int) -> Array:
        """Draw causes from the highest layer downwards, and return the lowest ones."""
        return fantasies(self.layers(parameters), key, n_samples)[0]

    def statistics(self, inference: Inference) -> dict[str, Array]:
        """Return Σ_n w_n ⟨v⟩, the expected number of rows with each cause: (H,)."""
        return {"active": inference.total_causes}

    def maximize(
        self, parameters: dict[str, Array], statistics: dict[str, Array], weight: Array, max_active: int | None = None
    ) -> dict[str, Array]:
        """Return the parameters unchanged, because they are learned by wake–sleep."""
        return parameters


class SingleLayer(Layered):
    """Independent binary causes in one layer, P(v) = Π_a f(g_a)^{v_a} (1 − f(g_a))^{1 − v_a}, without higher causes."""

    higher = ()
    has_singles = True

    def __init__(self) -> None:
        return

    def validate(self) -> None:
        """Accept every prior of this class, because it has no settings."""
        return

    def optional_methods(self) -> tuple[str, ...]:
        """Return the names of methods that this prior offers, although its causes count as layered."""
        return ("log_probability",)

    def log_probability(self, states: Array, parameters: dict[str, Array]) -> Array:
        """Return Σ_a log P(v_a) of states (S, H): (S,)."""
        return log_bernoulli(states, jnp.broadcast_to(parameters["bias_1"], states.shape))

    def activity(self, parameters: dict[str, Array]) -> Array:
        """Return the probability f(g_a) of each cause: (H,)."""
        return jax.nn.sigmoid(parameters["bias_1"])
