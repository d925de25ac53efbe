"""Initial weights and biases of a Helmholtz machine, of its generative and its recognition network."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from multicause.initialization.conditions import InitialConditions
from multicause.noises.logistic import MARGIN
from multicause.priors.layered import INITIAL_SPREAD
from multicause.records import Parameters


def network_starts(initial: InitialConditions, starts: Parameters, *, given: bool) -> Parameters:
    """Return small random weights, and biases that give causes and data their frequencies.

    ``starts`` are initial parameters of the parts; their components are kept if they were ``given`` by the user.
    """
    model, data = initial.model, initial.data
    sizes = (data.n_features, starts.components.shape[1], *model.prior.higher)

    def small(*shape: int) -> Any:
        return (INITIAL_SPREAD * initial.random.normal(size=(initial.n_starts, *shape))).astype(data.dtype)

    components: Any = starts.components
    noise: dict[str, Any] = dict(starts.noise)
    nonnegative = model.update.nonnegative
    if not given:
        components = np.abs(small(*components.shape[1:])) if nonnegative else small(*components.shape[1:])
    if nonnegative:
        # Non-negative weights can only raise probabilities, so the data must be zero if no cause is active.
        noise["bias"] = np.full_like(noise["bias"], np.log(MARGIN) - np.log1p(-MARGIN))
    prior = {
        name: small(*value.shape[1:]) if name.startswith("weights") else value for name, value in starts.prior.items()
    }
    recognition: dict[str, Any] = {}
    for k, (below, above) in enumerate(itertools.pairwise(sizes)):
        recognition[f"weights_{k}"] = small(below, above)
        recognition[f"bias_{k}"] = prior[f"bias_{k + 1}"]
    return Parameters(components, prior, noise, recognition)
