"""Principal components, the limit of factor analysis without noise.

TN10: P. Dayan and L. F. Abbott, Theoretical Neuroscience (MIT Press 2001), chapter 10.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from multicause.arrays import Array, matmul
from multicause.learning import recognition
from multicause.learning.annealing import Annealing
from multicause.learning.results import Fit, Phase
from multicause.model import Model, Parameters, Statistics
from multicause.models.factor_analysis import GaussianFactors
from multicause.models.summary import Brief
from multicause.noises import Gaussian, Noise
from multicause.posteriors import LinearGaussian
from multicause.shell import ValueLabels

# Directions beyond the components that are followed too when EM is finished, so that a small gap between the last
# component and the next direction does not slow it down; and most steps.
GUARDS = 10
MOST_STEPS = 2000
# Roundings of the largest variance below which directions have stopped turning.
RESIDUAL = 16


class PrincipalComponents(GaussianFactors):
    """Principal components analysis (PCA), learned by EM in the limit of vanishing noise.

    TN10 eq. 10.22–10.25 and its appendix, with the data's mean subtracted and C its covariance::

        v = W·u,  W = (GᵀG)⁻¹Gᵀ
        G ← C·Wᵀ·(W·C·Wᵀ)⁻¹

    EM finds the principal subspace; G is then rotated to the principal axes, of length one. The model that is kept has
    the noise and prior of greatest likelihood for these axes (probabilistic PCA), so that its scores can be compared
    with those of other models, while causes are still recognised by projection.

    Parameters
    ----------
    n_components : int, default=2
        Number H of components, at most the number of features.
    max_iter, n_init, init, random_state, verbose, engine
        As for :class:`multicause.FactorAnalysis`.
    tol : float, default=1e-7
        EM ends when F per row rises by less per iteration; the subspace is then followed to rounding.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Principal axes of length one, the most important first, each with its largest weight positive.
    explained_variance_ : ndarray of shape (n_components,)
        Variance of the data along each axis.
    noise_variance_ : float
        Mean variance along all other directions.
    activity_ : ndarray of shape (n_components,)
        Standard deviation of each cause under the prior.
    mean_ : ndarray of shape (n_features,)
        Mean of the data.
    lower_bounds_ : ndarray of shape (n_kept + 1,), as for :class:`multicause.MaximalCauses`
        F of eq. 10.23 without the prior's part, which vanishes beside the others; the last is ``lower_bound_``.
    lower_bound_ : float
        Mean log-likelihood of the model that is kept.
    n_iter_, converged_, outcome_
        As for :class:`multicause.MaximalCauses`.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import PrincipalComponents
    >>> X = np.random.RandomState(0).normal(size=(500, 3)) * [1, 5, 2]
    >>> np.abs(PrincipalComponents(2, random_state=0).fit(X).components_).round(1).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    in_brief = Brief(
        "p[v] = N(v; 0, 1); u = G·v", "v = W·u; W = (GᵀG)⁻¹Gᵀ", "G = C·Wᵀ(W·C·Wᵀ)⁻¹; C = ⟨uu⟩; then rotated"
    )
    explained_variance_: np.ndarray
    _results = ("mean_", "explained_variance_")

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Log-likelihood log N(u; mean, G Λ Gᵀ + σ²) of each row: (n_samples,)."""
        exact = replace(self._model, posterior=LinearGaussian()) if hasattr(self, "components_") else None
        return self._by_rows(recognition.log_evidence, X, model=exact)

    def free_energy(self, X: ArrayLike) -> np.ndarray:
        """⟨log p[v(u), u]⟩ of each row, with deterministic recognition (TN10 eq. 10.23): (n_samples,)."""
        energy, causes = super().free_energy(X), self.transform(X)
        squares = np.sum((causes / self.activity_) ** 2, axis=1)
        constant = np.sum(np.log(self.activity_)) + 0.5 * len(self.activity_) * np.log(2 * np.pi)
        return (energy - 0.5 * squares - constant).astype(energy.dtype, copy=False)

    def _value_labels(self) -> ValueLabels:
        """Learning raises F; the model that is kept has a likelihood, by which it is scored."""
        exact = LinearGaussian()
        return ValueLabels(exact.bound_label, self._model.posterior.bound_label, exact.evidence_label)

    def _noise(self) -> Noise:
        return Gaussian()

    def _posterior(self) -> LinearGaussian:
        return LinearGaussian(limit=True)

    def _finished(self, model: Model, parameters: Parameters, statistics: Statistics | None = None) -> Parameters:
        """From the subspace that EM has found to the axes in it."""
        covariance, old = self._preparation["covariance"], jax.device_get(parameters)
        n_components, n_features = old.components.shape
        variances, axes = jax.device_get(
            principal_axes(jnp.asarray(covariance), jnp.asarray(old.components, dtype=jnp.float64))
        )
        signs = np.sign(axes[np.arange(n_components), np.abs(axes).argmax(axis=1)])
        axes = axes * np.where(signs == 0, 1, signs)[:, None]
        rest = max(np.trace(covariance) - variances.sum(), 0) / max(n_features - n_components, 1)
        noise = max(rest, float(old.noise["floor"]))
        dtype = old.components.dtype
        self.explained_variance_ = variances.astype(dtype)
        scale = np.sqrt(np.maximum(variances - noise, float(old.noise["floor"])))
        modelled, others = scale**2 + noise, n_features - n_components
        logs = np.log(modelled).sum() + others * np.log(noise) + n_features * np.log(2 * np.pi)
        self._likelihood = -0.5 * (logs + (variances / modelled).sum() + others * rest / noise)
        variance: Any = np.asarray(noise, dtype=dtype)
        return Parameters(axes.astype(dtype), {"scale": scale.astype(dtype)}, {**old.noise, "variance": variance})

    def _keep_history(self, result: Fit, annealing: Annealing) -> None:
        bound = float(self._likelihood)
        del self._likelihood
        end = Phase(len(result.bounds) - 1, "the log evidence of the model that is kept")
        bounds, phases = np.array([*result.bounds[:-1], bound]), (*result.phases, end)
        super()._keep_history(result._replace(bound=bound, bounds=bounds, phases=phases), annealing)


@jax.jit
def principal_axes(covariance: Array, start: Array) -> tuple[Array, Array]:
    """Largest eigenvalues (H,) and their vectors (H, D) of a covariance, from a subspace near theirs.

    EM's step C·Wᵀ(W·C·Wᵀ)⁻¹ spans C·G: it is subspace iteration. Here it goes on with some more directions, and the
    axes are found inside the subspace after each step.
    """
    n_components, n_features = start.shape
    n_directions = min(n_features, 2 * n_components + GUARDS)
    # Directions in general position: those that EM has left out must be among them.
    others = jax.random.normal(jax.random.key(0), (n_directions - n_components, n_features), start.dtype)
    basis = jnp.linalg.qr(jnp.concatenate([start, others]).T)[0]
    enough = RESIDUAL * jnp.finfo(start.dtype).eps * jnp.max(jnp.abs(covariance)) * n_features

    def ritz(basis: Array) -> tuple[Array, Array, Array]:
        image = matmul(covariance, basis)
        values, vectors = jnp.linalg.eigh(matmul(basis.T, image))
        order = jnp.argsort(-values)
        basis, image, values = matmul(basis, vectors[:, order]), matmul(image, vectors[:, order]), values[order]
        residual = jnp.linalg.norm((image - basis * values)[:, :n_components])
        return basis, values, residual

    def step(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        steps, basis, _, _ = state
        return (steps + 1, *ritz(jnp.linalg.qr(matmul(covariance, basis))[0]))

    def turning(state: tuple[Array, Array, Array, Array]) -> Array:
        return (state[3] > enough) & (state[0] < MOST_STEPS)

    _, basis, values, _ = jax.lax.while_loop(turning, step, (jnp.zeros((), jnp.int32), *ritz(basis)))
    return values[:n_components], basis[:, :n_components].T
