"""Every part in plain NumPy and SciPy, by the name of its class: log p(s, y) of states and rows, and sums over them.

It shares no code with the library. ``parameters`` are those of the library's parts, which are named as in the papers.
"""

from itertools import product

import numpy as np
from scipy import stats

from tests.oracles.enumeration import all_states, credit


def log_prior(prior, parameters, state):
    """log p(s) of one state, or the log density of real causes."""
    if prior == "Bernoulli":
        activity = parameters["activity"]
        return stats.bernoulli.logpmf(np.asarray(state).astype(int), activity).sum()
    if "level_probabilities" in parameters:
        levels = [-1, 0, 1] if prior == "Ternary" else [0, 1, 2]
        return sum(np.log(parameters["level_probabilities"][h, levels.index(s)]) for h, s in enumerate(state))
    if prior == "Categorical":
        return float(np.log(parameters["activity"]) @ state) if np.sum(state) == 1 else -np.inf
    densities = {
        "Gaussian": stats.norm.logpdf,
        "Laplace": stats.laplace.logpdf,
        "Cauchy": stats.cauchy.logpdf,
        "HyperbolicSecant": stats.hypsecant.logpdf,
    }
    scale = parameters["scale"]
    if prior == "SubGaussian":  # two normal densities around ±1
        v = np.asarray(state) / scale
        return float(np.sum(np.logaddexp(stats.norm.logpdf(v, 1), stats.norm.logpdf(v, -1)) - np.log(2 * scale)))
    return float(np.sum(densities[prior](np.asarray(state), scale=scale)))


def mean(rule, W, state, upper=None):
    """w̄(s) of one state."""
    if rule == "Maximum":
        rows = [W[h] for h in range(len(W)) if state[h]]
        return np.max(rows, axis=0) if rows else np.zeros(W.shape[1])
    if rule == "MaximumMagnitude":
        rows = np.array([W[h] for h in range(len(W)) if state[h]])
        return np.array([max(column, key=abs) for column in rows.T]) if len(rows) else np.zeros(W.shape[1])
    if rule == "NoisyOr":
        return 1 - np.prod([(1 - W[h]) ** state[h] for h in range(len(W))], axis=0)
    total = np.asarray(state) @ W
    return total if upper is None else np.minimum(total, upper)


def log_noise(noise, parameters, y, w, state, floor=None, leak=None):
    """log p(y | s) of one row (D,) or of several (N, D), given the mean of the state."""
    if noise in ("Gaussian", "DiagonalGaussian"):
        return stats.norm.logpdf(y, w, np.sqrt(parameters["variance"])).sum(axis=-1)
    if noise == "ClusterGaussian":
        return stats.norm.logpdf(y, w, np.sqrt(parameters["variance"][np.argmax(state)])).sum(axis=-1)
    if noise == "Poisson":
        return stats.poisson.logpmf(y, np.maximum(w, floor)).sum(axis=-1)
    if noise == "LeakyBernoulli":
        return stats.bernoulli.logpmf(y, 1 - (1 - leak) * (1 - w)).sum(axis=-1)
    return stats.bernoulli.logpmf(y, np.clip(w, floor, 1 - floor)).sum(axis=-1)


def variance(noise, parameters, w, floor=None):
    """Variance of the data given their mean."""
    if noise in ("Gaussian", "DiagonalGaussian"):
        return np.broadcast_to(parameters["variance"], w.shape)
    w = np.maximum(w, floor) if noise == "Poisson" else np.clip(w, floor, 1 - floor)
    return w if noise == "Poisson" else w * (1 - w)


class Enumeration:
    """Sums over all states of few binary causes, at one temperature.

    ``most_credited`` is the largest number of active causes of a state that has credit for data.
    """

    def __init__(self, parts, parameters, Y, temperature, most_credited=None):
        self.prior, self.rule, self.noise = (parts[role] for role in ("prior", "rule", "noise"))
        self.upper, self.floor, self.leak = parts["upper"], parts["floor"], parts["leak"]
        self.parameters, self.Y, self.temperature = parameters, Y, temperature
        self.levels = {"Ternary": (-1, 0, 1), "Graded": (0, 1, 2)}.get(self.prior, (0, 1))
        self.states = np.array(list(product(self.levels, repeat=len(parameters.components))))
        self.credited = [most_credited is None or s.sum() <= most_credited for s in self.states]
        self.table = np.stack([self._log_joint(s) for s in self.states], axis=1)
        scaled = self.table / temperature
        largest = scaled.max(axis=1, keepdims=True)
        weights = np.exp(scaled - largest)
        self.q = weights / weights.sum(axis=1, keepdims=True)
        self.free_energy = temperature * (np.log(weights.sum(axis=1)) + largest[:, 0])

    def _log_joint(self, state):
        prior = log_prior(self.prior, self.parameters.prior, state)
        if prior == -np.inf:
            return np.full(len(self.Y), prior)
        return prior + self.log_likelihood(self.parameters.components, state)

    def log_likelihood(self, W, state):
        """log p(y | s, W) of all rows: (N,)."""
        w = mean(self.rule, W, state, self.upper)
        return log_noise(self.noise, self.parameters.noise, self.Y, w, state, self.floor, self.leak)

    @property
    def bound(self):
        """Σ_n ⟨log p − log q⟩."""
        table = np.where(self.q > 0, self.table, 0)
        return float(np.sum(self.q * (table - np.log(np.where(self.q > 0, self.q, 1)))))

    def expected(self, W):
        """Σ_n ⟨log p(y | s, W)⟩ over the states with credit, which a step of the components should raise."""
        return sum(
            self.q[:, k] @ self.log_likelihood(W, s)
            for k, s in enumerate(self.states)
            if self.credited[k] and self.q[:, k].any()
        )

    def sums(self):
        """Every statistic of a part by its name."""
        W, noise = self.parameters.components, self.parameters.noise
        (H, D), N = W.shape, len(self.Y)
        zero, sums = np.zeros((H, D)), {}
        sums["active"] = sums["causes"] = self.q.sum(axis=0) @ self.states
        if len(self.levels) > 2:
            sums["levels"] = np.stack([self.q.sum(axis=0) @ (self.states == level) for level in self.levels], axis=1)
            sums["active"] = self.q.sum(axis=0) @ (self.states != 0)
        sums["weight"] = float(N)
        sums["cause_data"] = (self.q @ self.states).T @ self.Y
        sums["cause_pairs"] = np.einsum("nk,ki,kj->ij", self.q, self.states, self.states)
        sums["residuals"] = np.zeros(D)
        sums["squares"] = np.sum((self.Y - noise.get("origin", 0)) ** 2, axis=0)
        names = ("credited_data", "credit", "gradient", "curvature", "shares", "activations")
        sums |= {name: zero.copy() for name in names}
        for k, s in enumerate(self.states):
            w = mean(self.rule, W, s, self.upper)
            J = self._credit(s, w)
            for n, y in enumerate(self.Y):
                sums["residuals"] += self.q[n, k] * (y - w) ** 2
                if not (self.credited[k] and self.q[n, k] > 0):
                    continue
                sums["credited_data"] += self.q[n, k] * J * y
                sums["credit"] += self.q[n, k] * J
                if self.noise == "LeakyBernoulli":
                    on = 1 - (1 - self.leak) * (1 - w)
                    sums["activations"] += self.q[n, k] * s[:, None] * y * W / on
                elif self.noise != "ClusterGaussian":
                    V = variance(self.noise, noise, w, self.floor)
                    sums["gradient"] += self.q[n, k] * J * (y - w) / V
                    sums["curvature"] += self.q[n, k] * J * self._overlap(s) / V
                    sums["shares"] += self.q[n, k] * W * J * y / V
        sums["residual"] = float(sums["residuals"].sum())
        sums["target"] = sums["curvature"] * W + sums["gradient"]
        return sums

    def _overlap(self, s):
        return s.sum() if self.rule == "Sum" else min(s.sum(), 1)

    def _credit(self, state, w):
        W = self.parameters.components
        if self.rule in ("Maximum", "MaximumMagnitude"):
            return credit(state, np.abs(W), self.temperature)
        cut_off = self.rule == "Sum" and self.upper is not None
        inside = state @ W <= self.upper if cut_off else np.ones_like(w)
        return state[:, None] * inside


def of_clusters(enumeration):
    """The statistics of a noise of each cluster's own."""
    q = enumeration.q @ enumeration.states  # exactly one cause is active
    centred = enumeration.Y - enumeration.parameters.noise["origin"]
    return {"weight": q.sum(axis=0), "data": q.T @ centred, "squares": q.T @ (centred**2).sum(axis=1)}


def of_gaussian_causes(parameters, Y):
    """log evidence (N,), means (N, H) and covariance (H, H) of normal causes that add up: TN10 eq. 10.20–10.21."""
    G, scale = parameters.components.T, parameters.prior["scale"]
    noise = np.diag(np.broadcast_to(parameters.noise["variance"], len(G)))
    evidence = stats.multivariate_normal.logpdf(Y, np.zeros(len(G)), G @ np.diag(scale**2) @ G.T + noise)
    covariance = np.linalg.inv(np.diag(scale**-2.0) + G.T @ np.linalg.inv(noise) @ G)
    return evidence, Y @ np.linalg.inv(noise) @ G @ covariance, covariance


class SpikeEnumeration:
    """Sums over all states of few spikes, with the posterior of the slabs in closed form; temperature is of the spikes.

    ``observed`` (N, D) says which values count, by default all. What is latent in addition where values are missing has
    its expectation in ``cause_data``.
    """

    def __init__(self, parameters, Y, temperature=1.0, observed=None):
        self.parameters, self.Y, self.temperature = parameters, Y, temperature
        self.observed = np.ones(Y.shape, dtype=bool) if observed is None else np.asarray(observed, dtype=bool)
        self.variance = np.broadcast_to(parameters.noise["variance"], Y.shape[1])
        H = len(parameters.components)
        self.states = all_states(H)
        found = [[self._given(y, seen, s) for s in self.states] for y, seen in zip(Y, self.observed, strict=True)]
        self.table = np.array([[joint for joint, _, _ in row] for row in found])
        self.means = np.array([[mean for _, mean, _ in row] for row in found])  # (N, S, H)
        self.covariances = np.array([[covariance for _, _, covariance in row] for row in found])  # (N, S, H, H)
        scaled = self.table / temperature
        largest = scaled.max(axis=1, keepdims=True)
        weights = np.exp(scaled - largest)
        self.q = weights / weights.sum(axis=1, keepdims=True)
        self.free_energy = temperature * (np.log(weights.sum(axis=1)) + largest[:, 0])

    def _given(self, y, seen, state):
        """log p(s, y), and mean and covariance of s∘z given s and y."""
        W, prior, on = self.parameters.components, self.parameters.prior, state == 1
        joint = stats.bernoulli.logpmf(state, prior["activity"]).sum()
        w, mu, psi = W[on][:, seen], prior["slab_mean"][on], prior["slab_variance"][on]
        noise = np.diag(self.variance[seen])
        mean, covariance = np.zeros(len(W)), np.zeros((len(W), len(W)))
        if seen.any():
            joint += stats.multivariate_normal.logpdf(y[seen], mu @ w, w.T @ np.diag(psi) @ w + noise)
        gain = np.diag(psi) @ w @ np.linalg.inv(w.T @ np.diag(psi) @ w + noise)
        mean[on] = mu + gain @ (y[seen] - mu @ w)
        covariance[np.ix_(on, on)] = np.diag(psi) - gain @ w.T @ np.diag(psi)
        return joint, mean, covariance

    @property
    def bound(self):
        """Σ_n ⟨log p − log q⟩."""
        return float(np.sum(self.q * (self.table - np.log(np.where(self.q > 0, self.q, 1)))))

    @property
    def mean_causes(self):
        """⟨s∘z⟩: (N, H)."""
        return np.einsum("nk,nkh->nh", self.q, self.means)

    @property
    def squares_of_causes(self):
        """⟨(s∘z)(s∘z)ᵀ⟩ of each row: (N, H, H)."""
        of_means = np.einsum("nk,nki,nkj->nij", self.q, self.means, self.means)
        return of_means + np.einsum("nk,nkij->nij", self.q, self.covariances)

    def residuals(self, W):
        """Σ_n ⟨(y − w̄)²⟩ over observed values, given components: (D,)."""
        means, pairs = self.mean_causes @ W, np.einsum("nij,id,jd->nd", self.squares_of_causes, W, W)
        return np.sum(self.observed * (self.Y**2 - 2 * self.Y * means + pairs), axis=0)

    def expected(self, W):
        """Σ_n ⟨log p(y | s∘z, W)⟩, apart from a constant."""
        return -0.5 * np.sum(self.residuals(W) / self.variance)

    def sums(self):
        """Every statistic of a part by its name."""
        W, pairs = self.parameters.components, self.squares_of_causes
        latent = np.einsum("nij,jd->nid", pairs, W)  # ⟨s∘z y⟩ where y was not observed
        seen = self.mean_causes[:, :, None] * self.Y[:, None]
        return {
            "active": self.q.sum(axis=0) @ self.states,
            "slabs": self.mean_causes.sum(axis=0),
            "slab_squares": np.einsum("nhh->h", pairs),
            "cause_data": np.sum(np.where(self.observed[:, None], seen, latent), axis=0),
            "cause_pairs": pairs.sum(axis=0),
            "squares": np.sum(self.observed * self.Y**2, axis=0),
            "residual": float(self.residuals(W).sum()),
        }
