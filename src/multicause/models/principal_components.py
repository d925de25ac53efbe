"""Principal components, the limit of factor analysis without noise.

TN10: P. Dayan and L. F. Abbott, Theoretical Neuroscience (MIT Press 2001), chapter 10.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from multicause import inference
from multicause.combinations import Sum
from multicause.em.solver import Solver
from multicause.engines import Engine
from multicause.estimators.base import ValueLabels
from multicause.estimators.gaussian_factors import GaussianFactors
from multicause.model import Model
from multicause.noises import Gaussian as GaussianNoise
from multicause.posteriors import LinearGaussian
from multicause.priors import Gaussian
from multicause.solvers.principal_axes import Eigendecomposition
from multicause.updates import LeastSquares


class PrincipalComponents(GaussianFactors):
    """Principal components analysis (PCA), the limit of factor analysis for vanishing noise.

    TN10 eq. 10.22–10.25 and its appendix, with the data's mean subtracted and C its covariance::

        v = W·u,  W = (GᵀG)⁻¹Gᵀ
        G = C·Wᵀ·(W·C·Wᵀ)⁻¹

    Orthogonal columns of G that satisfy both are eigenvectors of C. Those with the largest eigenvalues, of length one,
    come from one eigendecomposition, which has no settings and needs no iterations. Noise and prior have maximum
    likelihood given these axes (probabilistic PCA), so that scores can be compared with those of other models, while
    causes are still inferred by projection.

    Parameters
    ----------
    n_components : int, default=2
        Number H of components, at most the number of features.
    random_state : int or RandomState, optional
        Not used, because the solution is deterministic; present for consistency with the other models.
    verbose, engine
        As for :class:`multicause.FactorAnalysis`.

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
    lower_bound_ : float
        Mean log-likelihood of the training rows.
    lower_bounds_ : ndarray
        ``lower_bound_`` after ``fit``, and after each batch of ``partial_fit`` for all rows up to it.
    n_iter_ : int
        1 after ``fit``, or the iterations of EM where values are missing; one more for each batch of ``partial_fit``.
    converged_, outcome_
        True and "converged", unless EM for missing values needs more iterations than it is allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import PrincipalComponents
    >>> X = np.random.RandomState(0).normal(size=(500, 3)) * [1, 5, 2]
    >>> np.abs(PrincipalComponents(2).fit(X).components_).round(1).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    explained_variance_: np.ndarray

    def __init__(
        self,
        n_components: int = 2,
        *,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.n_components = n_components
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Return the log-likelihood log N(u; mean, G Λ Gᵀ + σ²) of each row: (n_samples,)."""
        exact = replace(self._model, posterior=LinearGaussian()) if hasattr(self, "components_") else None
        return self._by_rows(inference.log_evidence, X, model=exact)

    def free_energy(self, X: ArrayLike) -> np.ndarray:
        """Return ⟨log p[v(u), u]⟩ of each row, with deterministic recognition (TN10 eq. 10.23): (n_samples,)."""
        energy, causes = super().free_energy(X), self.transform(X)
        squares = np.sum((causes / self.activity_) ** 2, axis=1)
        constant = np.sum(np.log(self.activity_)) + 0.5 * len(self.activity_) * np.log(2 * np.pi)
        return (energy - 0.5 * squares - constant).astype(energy.dtype, copy=False)

    def value_labels(self) -> ValueLabels:
        """Return labels of the log-likelihood, which is both the bound and the score of rows."""
        exact = LinearGaussian()
        return ValueLabels(exact.bound_label, exact.bound_label, exact.evidence_label)

    def _parts(self) -> Model:
        parts = (Gaussian(), Sum(), GaussianNoise(), LinearGaussian(limit=True), LeastSquares())
        return Model(*parts, learn=frozenset({"components", "noise"}))

    def _solver(self) -> Solver:
        return Eigendecomposition()
