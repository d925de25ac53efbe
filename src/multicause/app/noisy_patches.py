"""Patches of a noisy image under a fitted linear model: posterior means given the strength of the noise.

A model of clean photographs takes noise for signal, in particular one without a noise term, such as ICA or PCA. Here a
patch, without the model's mean, is::

    y = √z · (x + u) + ε,   x ~ N(0, C),  u ~ N(0, ρ·1),  ε ~ N(0, σ²·1)

with the covariance C of what the causes generate, the contrast z of the patch, which is unknown (photographs have flat
and busy regions), the details u that the causes do not explain, and white noise. Given z, the posterior mean of the sum
is linear in y; it is averaged over a grid of contrasts with their posterior probabilities (a Gaussian scale mixture;
Portilla, Strela, Wainwright & Simoncelli 2003).
"""

from __future__ import annotations

import numpy as np

from multicause.app.preparation import PreparedModel

#: Contrasts that a patch may have, with equal prior probabilities.
CONTRASTS = np.logspace(-3, 2, 26)
# Rows drawn from the model for its covariance: its entries are then known to about one percent.
N_SAMPLES = 10_000
# Directions with a smaller share of the largest variance are those in which causes generate nothing.
LEAST_SHARE = 1e-6


class NoisyPatches:
    """Reconstruction of patches with white noise of a known strength by a fitted linear model.

    Parameters
    ----------
    model : PreparedModel
        Model of patches whose causes have strengths that add up (``adds_strengths``).
    noise_level : float
        Standard deviation σ of the noise, in the units of the rows.
    rows : array of shape (n, D)
        Patches of the noisy image, from which the variance ρ of details that the causes do not explain is estimated.
    """

    def __init__(self, model: PreparedModel, noise_level: float, rows: np.ndarray) -> None:
        self._center = model.preparation.center
        self._noise_level = noise_level
        means = np.asarray(model.inverse_transform(model.sample(N_SAMPLES, random_state=0)[1]), dtype=float)
        self._mean = means.mean(axis=0)
        variances, axes = np.linalg.eigh(np.cov(means.T).reshape(len(self._mean), -1))
        used = variances > LEAST_SHARE * variances[-1]
        self._axes = axes[:, used]
        # Variances are relative to that of the noise from here on.
        self._explained = variances[used] / noise_level**2
        self._n_others = max(0, len(self._mean) - int(self._center) - int(used.sum()))
        self._details = 0.0
        if self._n_others:
            _, rest, _ = self._split(rows)
            self._details = max(0.0, float(np.mean(rest**2) * rest.shape[1] / self._n_others - 1))

    def _split(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows on the axes of the model and beside them, both in units of σ, and what was subtracted."""
        rows = np.asarray(rows, dtype=float)
        level = rows.mean(axis=1, keepdims=True) if self._center else np.zeros((len(rows), 1))
        level = level + self._mean
        whole = (rows - level) / self._noise_level
        along = whole @ self._axes
        return along, whole - along @ self._axes.T, level

    def reconstruct(self, rows: np.ndarray) -> np.ndarray:
        """Return the posterior mean of patches without noise: (n, D)."""
        along, rest, level = self._split(rows)
        contrasts = CONTRASTS[:, None]
        signal, details = contrasts * self._explained, contrasts * self._details
        scores = -0.5 * (along**2 @ (1 / (signal + 1)).T + (rest**2).sum(axis=1, keepdims=True) / (details.T + 1))
        scores -= 0.5 * (np.log1p(signal).sum(axis=1) + self._n_others * np.log1p(details[:, 0]))
        probabilities = np.exp(scores - scores.max(axis=1, keepdims=True))
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        found = (probabilities @ (signal / (signal + 1)) * along) @ self._axes.T
        found += probabilities @ (details / (details + 1)) * rest
        return self._noise_level * found + level
