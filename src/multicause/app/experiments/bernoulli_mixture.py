"""EM for a mixture of Bernoulli distributions in plain NumPy, with which noisy-or causes are compared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

MAX_ITER = 200
# Learning ends when the mean log-likelihood of a row rises by less.
TOL = 1e-3
# Number of rows that a component has seen with a probability of one half, which keeps logarithms finite.
LEAST = 1e-2


class BernoulliMixture(NamedTuple):
    """p(y) = Σ_k π_k Π_d μ_kd^{y_d} (1 − μ_kd)^{1 − y_d}."""

    shares: np.ndarray  # (K,)
    means: np.ndarray  # (K, D)

    def log_joint(self, X: np.ndarray) -> np.ndarray:
        """Return log p(k, y) of binary rows (n, D): (n, K)."""
        on, off = np.log(self.means), np.log1p(-self.means)
        return X @ (on - off).T + off.sum(axis=1) + np.log(self.shares)

    def score(self, X: np.ndarray) -> float:
        """Return the mean log-likelihood of rows."""
        return float(logsumexp(self.log_joint(X), axis=1).mean())


def learn_mixture(X: np.ndarray, n_components: int, *, prior_rows: float, seed: int) -> BernoulliMixture:
    """Learn a mixture from binary rows, with components that begin near rows.

    ``prior_rows`` is the number of further rows, equal to the mean row, that every component has seen: a Dirichlet
    prior, without which pixels that are always off in a component's rows make held-out rows improbable.
    """
    random, X = np.random.RandomState(seed), X.astype(float)
    mean = X.mean(axis=0)
    chosen = X[random.choice(len(X), n_components, replace=False)]
    mixture = BernoulliMixture(np.full(n_components, 1 / n_components), 0.1 + 0.4 * (mean + chosen))
    last = -np.inf
    for _ in range(MAX_ITER):
        joint = mixture.log_joint(X)
        evidence = logsumexp(joint, axis=1)
        if evidence.mean() - last < TOL:
            break
        last = evidence.mean()
        posterior = np.exp(joint - evidence[:, None])
        counts = posterior.sum(axis=0)
        on = posterior.T @ X + prior_rows * mean + 0.5 * LEAST
        mixture = BernoulliMixture(
            (counts + LEAST) / (counts + LEAST).sum(), on / (counts + prior_rows + LEAST)[:, None]
        )
    return mixture
