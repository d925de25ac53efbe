"""Initial components of noiseless causes (ICA), which are learned from whitened data: random rotations."""

from __future__ import annotations

import jax
import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import special_ortho_group

from multicause.initialization.conditions import InitialConditions
from multicause.records import Parameters


def rotations(initial: InitialConditions, init: str | ArrayLike) -> Parameters:
    """Return initial components of whitened data: a random rotation, the principal axes ("identity"), or the user's."""
    H, forward = initial.data.n_features, initial.record["forward"]
    if isinstance(init, str):
        if init not in ("random", "identity"):
            raise ValueError(f"Unknown init {init!r}. Known: 'random', 'identity', or an array.")
        turn = H > 1 and init == "random"
        components = special_ortho_group.rvs(H, random_state=initial.random) if turn else np.eye(H)
    else:
        components = np.asarray(init, dtype=float)
        if components.shape != (H, H) or not np.isfinite(components).all():
            raise ValueError(
                f"init must be finite and have shape (n_components, n_components) = ({H}, {H}), as components of "
                f"the whitened data; got shape {components.shape}."
            )
        if np.linalg.matrix_rank(components) < H:
            raise ValueError("init must be invertible; its rows are linearly dependent. Use other components.")
    volume = 0.5 * np.linalg.slogdet(forward @ forward.T)[1]
    records = (components, initial.model.prior.initialize(H, None), {"log_volume": np.asarray(volume)})
    return Parameters(*jax.tree.map(lambda leaf: np.asarray(leaf, dtype=initial.data.dtype)[None], records))
