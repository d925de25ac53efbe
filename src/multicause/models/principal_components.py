"""Principal components, the limit of factor analysis without noise.

TN10: P. Dayan and L. F. Abbott, Theoretical Neuroscience (MIT Press 2001), chapter 10.
"""

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import check_random_state

from multicause.arrays import double_precision
from multicause.engines import Engine
from multicause.estimator import FitProblem
from multicause.learning import recognition
from multicause.learning.annealing import Annealing, NoAnnealing
from multicause.learning.convergence import Outcome
from multicause.learning.em_loop import learn
from multicause.learning.initialization import Outset, first_moments
from multicause.learning.results import Fit, Progress, Watcher, one_start, start_of
from multicause.model import Parameters, interned
from multicause.models.factor_analysis import GaussianFactors
from multicause.models.summary import Brief
from multicause.noises import Gaussian, Noise
from multicause.posteriors import LinearGaussian
from multicause.shell import ValueLabels

# Most iterations of EM where values are missing, and the rise of the mean log-likelihood per row at which it ends.
MOST_ITERATIONS = 2000
TOLERANCE = 1e-7


class Solution(NamedTuple):
    """The principal components of a covariance."""

    parameters: Parameters
    variances: np.ndarray  # (H,) of the data along the axes
    bound: float  # mean log-likelihood of a row
    reported: bool = False  # to callbacks


class PrincipalComponents(GaussianFactors):
    """Principal components analysis (PCA), the limit of factor analysis for vanishing noise.

    TN10 eq. 10.22–10.25 and its appendix, with the data's mean subtracted and C its covariance::

        v = W·u,  W = (GᵀG)⁻¹Gᵀ
        G = C·Wᵀ·(W·C·Wᵀ)⁻¹

    Orthogonal columns of G that satisfy both are eigenvectors of C. Those with the largest eigenvalues, of length one,
    come from one eigendecomposition, which has no settings and needs no iterations. The model has the noise and prior
    of greatest likelihood for these axes (probabilistic PCA), so that its scores can be compared with those of other
    models, while causes are still recognised by projection.

    Parameters
    ----------
    n_components : int, default=2
        Number H of components, at most the number of features.
    random_state : int or RandomState, optional
        Not used, because the solution does not depend on chance; for uniformity with the other models.
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
        Mean log-likelihood of the rows that were learned from.
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

    in_brief = Brief(
        "p[v] = N(v; 0, 1); u = G·v", "v = W·u; W = (GᵀG)⁻¹Gᵀ", "G = C·Wᵀ(W·C·Wᵀ)⁻¹; C = ⟨uu⟩: eigenvectors of C"
    )
    explained_variance_: np.ndarray
    _results = ("mean_", "explained_variance_")
    _parameter_constraints: dict[str, list[Any]] = {
        name: GaussianFactors._parameter_constraints[name]
        for name in ("n_components", "random_state", "verbose", "engine")
    }
    # The shared fit asks for them; one eigendecomposition has no use for other values.
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
        """The bound is the log-likelihood, by which rows are scored too."""
        exact = LinearGaussian()
        return ValueLabels(exact.bound_label, exact.bound_label, exact.evidence_label)

    def _noise(self) -> Noise:
        return Gaussian()

    def _posterior(self) -> LinearGaussian:
        return LinearGaussian(limit=True)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one more batch of a stream: the principal components of all rows so far."""
        first = not hasattr(self, "components_")
        model, data = self._receive(X, sample_weight)
        with double_precision():
            parameters = None if first else self._parameters
            if parameters is None:
                data, random = self._in_blocks(data, model, 1), check_random_state(self.random_state)
                parameters = start_of(self._starts(Outset(model, first_moments(data), data, random, 1)))
                self.lower_bounds_, self.n_iter_ = np.empty(0), 0
            solution = self._solve(parameters)
            self.explained_variance_, self._online = solution.variances, None
            self._keep(model, solution.parameters)
        self.evidence_threshold_ = -np.inf
        self._keep_bounds(np.append(self.lower_bounds_, solution.bound), self.n_iter_ + 1)
        return self

    def _learn(self, problem: FitProblem) -> tuple[Fit, Annealing]:
        """Find the solution, and report it to callbacks as one iteration; where values are missing, by EM."""
        if problem.model.missing:
            return self._learn_by_em(problem)
        watch, journal = problem.settings["watch"], problem.settings["journal"]
        with journal.loop(Solution, lambda: self._solve(start_of(problem.starts))) as loop:
            solution = loop.state
            self.explained_variance_ = solution.variances
            if not solution.reported:
                loop.state = solution._replace(reported=True)
                watch(Progress(0, np.ones(1), np.array([solution.bound]), one_start(solution.parameters)))
        nothing: Any = None
        result = Fit(
            parameters=solution.parameters,
            bound=solution.bound,
            bounds=np.array([solution.bound]),
            temperatures=np.ones(1),
            n_iter=1,
            n_rounds=1,
            converged=True,
            outcome=Outcome.CONVERGED,
            statistics=nothing,
        )
        return result, NoAnnealing()

    def _learn_by_em(self, problem: FitProblem) -> tuple[Fit, Annealing]:
        """Maximize the likelihood of the observed values by EM with noise, from the components of their covariances.

        Axes and variances follow from the components that it finds, which may be turned.
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
        """Return the components of the covariance so far, in the dtype and with the least noise of other parameters."""
        n_components = len(start.components)
        dtype, floor = start.components.dtype, float(start.noise["floor"])
        values, vectors = np.linalg.eigh(self._preparation["covariance"])
        values = np.maximum(values[::-1], 0)  # what is negative is so by rounding
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

    def _keep_history(self, result: Fit, annealing: Annealing) -> None:
        self._online = None
        self._keep_bounds(result.bounds, result.n_rounds)
        self.converged_, self.outcome_ = result.converged, result.outcome.value

    def _keep_bounds(self, bounds: np.ndarray, n_iter: int) -> None:
        self.lower_bound_, self.lower_bounds_, self.n_iter_ = float(bounds[-1]), bounds, n_iter
        self.temperatures_, self.rows_kept_, self.phases_ = np.ones(len(bounds)), None, ()
        self.annealing_, self.converged_, self.outcome_ = NoAnnealing(), True, Outcome.CONVERGED.value


def _turned(parameters: Parameters) -> Parameters:
    """Return the same density with axes of length one, the most important first, and causes of different scales."""
    components = np.asarray(parameters.components, dtype=float) * np.asarray(parameters.prior["scale"])[:, None]
    _, scale, axes = np.linalg.svd(components, full_matrices=False)
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    dtype, least = parameters.components.dtype, np.sqrt(float(parameters.noise["floor"]))
    turned: Any = (axes * signs[:, None]).astype(dtype)
    return parameters._replace(components=turned, prior={"scale": np.maximum(scale, least).astype(dtype)})


def _turned_all(parameters: Parameters) -> Parameters:
    """The same of parameters with a leading axis of one start."""
    return one_start(_turned(start_of(parameters)))
