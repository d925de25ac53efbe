"""A brute-force reference in plain NumPy and SciPy, written from the papers' equations.

It shares no code with the library.

Every state is visited by a Python loop; nothing is fast, nothing is in log space unless it must be.
"""

from itertools import product

import numpy as np
from scipy import stats


def all_states(H):
    """All binary vectors, with cause 0 as the fastest digit."""
    return np.array([bits[::-1] for bits in product((0, 1), repeat=H)])


def mean(state, W, combination):
    """w̄(s): the sum, or the maximum (zero if no cause is active), over active causes."""
    rows = [W[h] for h in range(len(W)) if state[h]]
    if not rows:
        return np.zeros(W.shape[1])
    return np.sum(rows, axis=0) if combination == "sum" else np.max(rows, axis=0)


def log_likelihood(y, w, noise, sigma=None, floor=1e-6):
    """log p(y | w̄) of the observed values, those that are not NaN, by SciPy's distributions."""
    y, w = y[~np.isnan(y)], w[~np.isnan(y)]
    if noise == "poisson":
        return stats.poisson.logpmf(y, np.maximum(w, floor)).sum()
    return stats.norm.logpdf(y, w, sigma).sum()


def log_joint(Y, W, activity, combination, noise, sigma=None):
    """log p(s, y): (N, S)."""
    states = all_states(len(W))
    table = np.empty((len(Y), len(states)))
    for k, s in enumerate(states):
        w = mean(s, W, combination)
        log_prior = sum(np.log(activity[h]) if s[h] else np.log(1 - activity[h]) for h in range(len(W)))
        for n, y in enumerate(Y):
            table[n, k] = log_likelihood(y, w, noise, sigma) + log_prior
    return table


def posterior(table, temperature=1.0):
    """q(s) ∝ p(s, y)^{1/T}: (N, S)."""
    scaled = table / temperature
    weights = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def log_evidence(table):
    """log p(y): (N,)."""
    largest = table.max(axis=1, keepdims=True)
    return np.log(np.exp(table - largest).sum(axis=1)) + largest[:, 0]


def bound(table, temperature):
    """Σ_s q log p − q log q for the tempered q: (N,)."""
    q = posterior(table, temperature)
    return np.sum(q * table - q * np.log(np.where(q > 0, q, 1)), axis=1)


def credit(state, W, temperature):
    """A_hd of ET10 eq. 36 with ρ = T/(T−1); at T = 1 the winners share equally: (H, D)."""
    A = np.zeros_like(W)
    active = [h for h in range(len(W)) if state[h]]
    if not active:
        return A
    for d in range(W.shape[1]):
        if temperature == 1:
            largest = max(W[h, d] for h in active)
            winners = [h for h in active if W[h, d] == largest]
            for h in winners:
                A[h, d] = 1 / len(winners)
        else:
            rho = temperature / (temperature - 1)
            # A does not change when all weights are scaled, so the largest may be one: no power overflows.
            largest = max(W[h, d] for h in active)
            norm = sum((W[h, d] / largest) ** rho for h in active) if largest > 0 else 0
            for h in active:
                if norm == 0:  # equal weights c have c^{ρ−1} (k c^ρ)^{(1−ρ)/ρ} = k^{(1−ρ)/ρ}, whatever c is
                    A[h, d] = len(active) ** ((1 - rho) / rho)
                else:
                    A[h, d] = (W[h, d] / largest) ** (rho - 1) * norm ** ((1 - rho) / rho)
    return A


def expectations(Y, W, q, combination, temperature=1.0, weights=None, variance=None):
    """Sums over rows and states of what the M-steps of the papers need.

    Values that are NaN were not observed: they have no credit and no residual, and ``cause_data`` has their mean under
    the state in their place. With ``variance``, the variance of an observation as a function of its mean, there are the
    sums of gradient steps, ``target`` and ``curvature``, and of multiplicative ones, ``shares``.
    """
    weights = np.ones(len(Y)) if weights is None else weights
    H, D = W.shape
    sums = {
        "active": np.zeros(H),
        "active_where_observed": np.zeros((H, D)),
        "cause_data": np.zeros((H, D)),
        "cause_pairs": np.zeros((H, H)),
        "credited_data": np.zeros((H, D)),
        "credit": np.zeros((H, D)),
        "residual": 0.0,
    }
    for k, s in enumerate(all_states(H)):
        w, A = mean(s, W, combination), credit(s, np.abs(W), temperature)
        for n, y in enumerate(Y):
            p = weights[n] * q[n, k]
            sums["active"] += p * s
            sums["active_where_observed"] += p * np.outer(s, ~np.isnan(y))
            sums["cause_data"] += p * np.outer(s, np.where(np.isnan(y), w, y))
            sums["cause_pairs"] += p * np.outer(s, s)
            sums["credited_data"] += p * np.where(np.isnan(y), 0, A * y)
            sums["credit"] += p * np.where(np.isnan(y), 0, A)
            sums["residual"] += p * np.nansum((y - w) ** 2)
    return sums if variance is None else sums | _steps(Y, W, q, combination, temperature, weights, variance)


def _steps(Y, W, q, combination, temperature, weights, variance):
    """Sums over rows and states of derivatives of log p(y | w̄), by the chain rule with J = ∂w̄/∂W."""
    target, curvature, shares = np.zeros_like(W), np.zeros_like(W), np.zeros_like(W)
    for k, s in enumerate(all_states(len(W))):
        w = mean(s, W, combination)
        J = np.outer(s, np.ones(len(w))) if combination == "sum" else credit(s, W, temperature)
        sharing = s.sum() if combination == "sum" else min(s.sum(), 1)
        V = variance(w)
        for n, y in enumerate(Y):
            p = weights[n] * q[n, k]
            m = ~np.isnan(y)
            curvature += np.where(m, p * J * sharing / V, 0)
            target += np.where(m, p * J * (sharing * W + y - w) / V, 0)
            shares += np.where(m, p * W * J * y / V, 0)
    return {"target": target, "curvature": curvature, "shares": shares}


def variance_of(noise, sigma=None, floor=1e-6):
    """The variance of an observation as a function of its mean."""
    return (lambda w: np.maximum(w, floor)) if noise == "poisson" else (lambda w: np.full_like(w, sigma**2))


def all_assignments(n_levels, H):
    """All assignments of level numbers to causes: (n_levels^H, H)."""
    return np.array(list(product(range(n_levels), repeat=H)))
