"""Principal components, the limit of factor analysis without noise.

TN10: P. Dayan and L. F. Abbott, Theoretical Neuroscience (MIT Press 2001), chapter 10.
"""

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import check_random_state

from multicause import inference
from multicause.annealing import Annealing, NoAnnealing
from multicause.arrays import double_precision
from multicause.em.driver import run_loop
from multicause.em.initialization import InitialConditions, first_moments
from multicause.em.loop import learn
from multicause.em.results import FitResult, Progress, Watcher, one_start, result_of_one, start_of
from multicause.engines import Engine
from multicause.estimators.base import ValueLabels
from multicause.estimators.causal import FitProblem
from multicause.estimators.summary import ModelSummary
from multicause.model import Parameters, interned
from multicause.models.factor_analysis import GaussianFactors
from multicause.noises import Gaussian, Noise
from multicause.outcomes import Outcome
from multicause.posteriors import LinearGaussian

# Maximum number of EM iterations if values are missing, and the rise of the mean log-likelihood per row that ends it.
MOST_ITERATIONS = 2000
TOLERANCE = 1e-7


class Solution(NamedTuple):
    """Principal components of a covariance matrix."""

    parameters: Parameters
    variances: np.ndarray  # (H,): variances of the data along the axes
    bound: float  # mean log-likelihood per row
    reported: bool = False  # whether callbacks have received it


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

    summary = ModelSummary(
        "p[v] = N(v; 0, 1); u = G·v", "v = W·u; W = (GᵀG)⁻¹Gᵀ", "G = C·Wᵀ(W·C·Wᵀ)⁻¹; C = ⟨uu⟩: eigenvectors of C"
    )
    explained_variance_: np.ndarray
    _results = ("mean_", "explained_variance_")
    _parameter_constraints: dict[str, list[Any]] = {
        name: GaussianFactors._parameter_constraints[name]
        for name in ("n_components", "random_state", "verbose", "engine")
    }
    # Settings that the inherited fit reads; an eigendecomposition needs no other values.
    max_iter, tol, n_init, init = 1, 0.0, 1, "random"

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

    def _value_labels(self) -> ValueLabels:
        """Return labels of the log-likelihood, which is both the bound and the score of rows."""
        exact = LinearGaussian()
        return ValueLabels(exact.bound_label, exact.bound_label, exact.evidence_label)

    def _noise(self) -> Noise:
        return Gaussian()

    def _posterior(self) -> LinearGaussian:
        return LinearGaussian(limit=True)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one more batch of a stream: compute the principal components of all rows so far."""
        first = not hasattr(self, "components_")
        model, data = self._receive(X, sample_weight)
        with double_precision():
            parameters = None if first else self._parameters
            if parameters is None:
                data, random = self._in_blocks(data, model, 1), check_random_state(self.random_state)
                parameters = start_of(self._starts(InitialConditions(model, first_moments(data), data, random, 1)))
                self.lower_bounds_, self.n_iter_ = np.empty(0), 0
            solution = self._solve(parameters)
            self.explained_variance_, self._online = solution.variances, None
            self._keep(model, solution.parameters)
        self.evidence_threshold_ = -np.inf
        self._keep_bounds(np.append(self.lower_bounds_, solution.bound), self.n_iter_ + 1)
        return self

    def _learn(self, problem: FitProblem) -> tuple[FitResult, Annealing]:
        """Compute the solution and report it to callbacks as one iteration; if values are missing, learn by EM."""
        if problem.model.missing:
            return self._learn_by_em(problem)
        watch, journal = problem.settings["watch"], problem.settings["journal"]

        def begin() -> Solution:
            solution = self._solve(start_of(problem.starts))
            self.explained_variance_ = solution.variances
            return solution

        solution = run_loop(
            Solution,
            begin,
            lambda state: state._replace(reported=True),
            goes_on=lambda state: not state.reported,
            report=lambda before, after: [
                Progress(0, np.ones(1), np.array([after.bound]), one_start(after.parameters))
            ],
            stop=lambda state: state,  # the solution is complete
            watch=watch,
            journal=journal,
        )
        self.explained_variance_ = solution.variances
        nothing: Any = None
        result = result_of_one(solution.parameters, nothing, [solution.bound], Outcome.CONVERGED, n_iter=1)
        return result, NoAnnealing()

    def _learn_by_em(self, problem: FitProblem) -> tuple[FitResult, Annealing]:
        """Maximize the likelihood of the observed values by EM with noise.

        EM starts from the principal components of the covariances. It determines components only up to a rotation; axes
        and variances are computed from them at the end.
        """
        start = self._solve(start_of(problem.starts)).parameters
        scale: Any = start.prior["scale"]
        start = start._replace(components=start.components * scale[:, None], prior={"scale": np.ones_like(scale)})
        model = interned(replace(problem.model, posterior=LinearGaussian()))
        settings = {**problem.settings, "max_iter": MOST_ITERATIONS, "tol": TOLERANCE}
        settings["watch"] = Watcher(
            settings["watch"], lambda progress: progress._replace(parameters=_turned_all(progress.parameters))
        )
        result = learn(model, problem.data, one_start(start), annealing=NoAnnealing(), **settings)
        parameters = _turned(result.parameters)
        self.explained_variance_ = np.asarray(parameters.prior["scale"] ** 2 + parameters.noise["variance"])
        return result._replace(parameters=parameters), NoAnnealing()

    def _solve(self, start: Parameters) -> Solution:
        """Return the principal components of the current covariance, with the dtype and noise floor of ``start``."""
        n_components = len(start.components)
        dtype, floor = start.components.dtype, float(start.noise["floor"])
        values, vectors = np.linalg.eigh(self._preparation["covariance"])
        values = np.maximum(values[::-1], 0)  # negative eigenvalues are rounding errors
        variances, rest, axes = values[:n_components], values[n_components:], vectors.T[::-1][:n_components]
        signs = np.sign(axes[np.arange(n_components), np.abs(axes).argmax(axis=1)])
        noise = max(float(rest.mean()) if len(rest) else 0.0, floor)
        scale = np.sqrt(np.maximum(variances - noise, floor))
        modelled = np.concatenate([scale**2 + noise, np.full(len(rest), noise)])
        bound = -0.5 * np.sum(np.log(2 * np.pi * modelled) + values / modelled)
        variance: Any = np.asarray(noise, dtype=dtype)
        parameters = Parameters(
            (axes * signs[:, None]).astype(dtype),
            {"scale": scale.astype(dtype)},
            {**start.noise, "variance": variance},
        )
        return Solution(parameters, variances.astype(dtype), float(bound))

    def _keep_history(self, result: FitResult, annealing: Annealing) -> None:
        self._online = None
        self._keep_bounds(result.bounds, result.n_rounds)
        self.converged_, self.outcome_ = result.converged, result.outcome.value

    def _keep_bounds(self, bounds: np.ndarray, n_iter: int) -> None:
        self.lower_bound_, self.lower_bounds_, self.n_iter_ = float(bounds[-1]), bounds, n_iter
        self.temperatures_, self.rows_kept_, self.phases_ = np.ones(len(bounds)), None, ()
        self.annealing_, self.converged_, self.outcome_ = NoAnnealing(), True, Outcome.CONVERGED.value


def _turned(parameters: Parameters) -> Parameters:
    """Return parameters of the same density with sorted axes of length one, and causes of different scales."""
    components = np.asarray(parameters.components, dtype=float) * np.asarray(parameters.prior["scale"])[:, None]
    _, scale, axes = np.linalg.svd(components, full_matrices=False)
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    dtype, least = parameters.components.dtype, np.sqrt(float(parameters.noise["floor"]))
    turned: Any = (axes * signs[:, None]).astype(dtype)
    return parameters._replace(components=turned, prior={"scale": np.maximum(scale, least).astype(dtype)})


def _turned_all(parameters: Parameters) -> Parameters:
    """Apply ``_turned`` to parameters with a leading axis of one start."""
    return one_start(_turned(start_of(parameters)))
