"""Statistical lower limit of the error: components estimated from data whose true states are known.

This module shares no code with learning: it uses plain NumPy and SciPy.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

# Number of rounds in which winners and means adapt to each other under the max rule.
ROUNDS = 100


def components_from_states(data: np.ndarray, states: np.ndarray, causes: np.ndarray, rule: str) -> np.ndarray:
    """Compute maximum-likelihood components (H, D) under Gaussian noise, given the states that generated the data.

    ``rule`` is "sum" (any sign), "nonnegative sum" or "max". Under "max", where a dimension belongs to the largest of
    the active components, the winners are updated until nothing changes, starting from the true causes.
    """
    states = states.astype(float)
    if rule == "sum":
        return np.linalg.lstsq(states, data, rcond=None)[0]
    if rule == "nonnegative sum":
        return np.array([nnls(states, column)[0] for column in data.T]).T
    if rule != "max":
        raise ValueError(f"Unknown rule {rule!r}. Known: 'sum', 'nonnegative sum', 'max'.")
    components = causes.astype(float)
    for _ in range(ROUNDS):
        wins = np.zeros((len(causes), *data.shape))
        active = np.where(states.T[:, :, None] > 0, components[:, None, :], -np.inf)
        largest = active.max(axis=0)
        for h in range(len(causes)):
            wins[h] = (active[h] == largest) & np.isfinite(largest)
        wins /= np.maximum(wins.sum(axis=0), 1)
        total = wins.sum(axis=1)
        means = np.einsum("hnd,nd->hd", wins, data) / np.maximum(total, 1e-12)
        new = np.where(total > 0, np.maximum(means, 0), components)
        if np.allclose(new, components, atol=1e-12):
            break
        components = new
    return components
