"""Energy-based components: ICA as a density model that is defined by energies.

EBM01: G. E. Hinton, M. Welling, Y. W. Teh and S. K. Osindero, A New View of ICA, Proceedings of the International
Conference on Independent Component Analysis and Blind Signal Separation (2001).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from multicause import energies, samplers
from multicause.arrays import check_room, double_precision
from multicause.energies import NONLINEARITIES, Expert
from multicause.engines import Engine
from multicause.engines.dask import is_distributed
from multicause.estimators import energy_density as density
from multicause.estimators import energy_fitting as fitting
from multicause.estimators.advice import Advice, energy_advice_on, is_single_precision
from multicause.estimators.base import BaseModel, ValueLabels, validate_weights, warn, warn_of
from multicause.outcomes import Outcome
from multicause.parts import PartChoice
from multicause.persistence.row_writing import check_out, write_rows
from multicause.preparation.whitening import KINDS
from multicause.samplers import Sampler
from multicause.samplers.annealed import LogPartition
from multicause.solvers import optimizers
from multicause.solvers.energy_problem import EnergyProblem, restored, saved
from multicause.solvers.optimizers import Optimizer


class EnergyComponents(BaseModel):
    """Filters of an energy-based model, learned by contrastive divergence: ICA, also overcomplete and layered.

    Hidden activities are functions of the observation, not causes of it, and each costs energy (EBM01 eq. 1 to 3)::

        z = K (x − μ)                       centring and whitening
        h_j = w_jᵀ z                        j = 1 … H, with H below, equal to or above the number of dimensions
        E(z) = Σ_j E_j(h_j),  p(z) = exp(−E(z)) / Z

    With ``layers``, a network computes further activities from these, which cost energy too (EBM01 fig. 8). With as
    many components as dimensions and one layer this is ICA, and Z is known (eq. 5). With fewer, directions that no
    filter sees are modelled as Gaussian. With more, or several layers, learning needs no Z, and
    :meth:`estimate_log_partition` estimates it.

    Parameters
    ----------
    n_components : int, optional
        Number H of filters; by default as many as whitened dimensions.
    expert : {"logistic", "student"}, Expert or callable, default="logistic"
        Energy of a hidden activity: −log σ(h)(1 − σ(h)) (eq. 11), γ_j log(1 + h²) with learned γ_j (eq. 12), an object,
        or a JAX function of activities that returns the energy of each.
    layers : tuple of int, default=()
        Sizes of further layers.
    nonlinearity : {"sigmoid", "tanh", "log_square"}, default="sigmoid"
        Function applied to the units of a layer before they enter the next layer.
    sampler : {"hamiltonian", "corrected_langevin", "langevin", "metropolis", "equilibrium", "exact"} or Sampler
        Source of the model's expectation in the gradient: Markov chains, independent samples ("equilibrium"), or the
        gradient of log Z ("exact"). The last two need a known Z. Sampler objects such as
        ``Hamiltonian(n_leapfrog=30)`` have settings; a kernel of your own is one class
        (``docs/developers/add_a_sampler.md``).
    n_steps : int, default=1
        Steps of the chains in one update. EBM01 has 20 for "metropolis" and "langevin", 10 for "corrected_langevin".
    persistent : bool, default=False
        Whether chains continue from their state in the last update instead of starting at the data.
    whiten : {"pca", "zca"} or None, default="pca"
        Whitening; with None the data are centred and divided by one number, the root of their mean variance.
    n_whitened : int, optional
        Number of principal components that are kept, with ``whiten="pca"``; the density is then that of the projection
        on these.
    batch_size : int or None, default=100
        Number of rows in a mini-batch, drawn with replacement; with None each update uses all rows.
    optimizer : {"momentum", "adam"} or Optimizer, default="momentum"
        Gradient descent with momentum, or an optimiser of optax with its settings, such as
        ``multicause.solvers.optimizers.Optax("rmsprop", {"decay": 0.95})``.
    learning_rate, final_learning_rate : float, default=0.05 and a hundredth of it
        Learning rate of the first and of the last update, for data of variance one.
    schedule : {"linear", "cosine", "constant"}, default="linear"
        How the learning rate falls from its first to its last value.
    momentum : float, default=0.9
        Fraction of its velocity that a parameter keeps from one update to the next, with ``optimizer="momentum"``.
    weight_decay : float, default=0.0
        Strength of the weight decay, which shrinks filters and weights towards zero.
    init : {"random", "unit"} or array-like of shape (n_components, n_features), default="random"
        Initial filters: Gaussian with standard deviation 0.1, random with norm one, or a given array in the space of X.
    max_iter : int, default=5000
        Number of updates, one for each mini-batch.
    tol : float, default=0.1
        The fit has converged if filters moved by less than this fraction of their size in the last quarter of learning
        (by the sum of the rates; the second half of the updates by default), and the sampler has found its step size.
    estimate_partition : bool, default=False
        Whether a fit ends with :meth:`estimate_log_partition`, so that scores of different models can be compared.
    random_state, verbose, engine
        As for :class:`multicause.MaximalCauses`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Filters in the space of X: activities of the first layer are ``(X - mean_) @ components_.T``.
    whitened_components_ : ndarray of shape (n_components, n_whitened)
        Filters w_j in whitened space; with ``whiten="zca"`` they are images like the data.
    mixing_ : ndarray of shape (n_features, n_components)
        Pseudo-inverse of the filters: the contribution of each activity to the data.
    mean_ : ndarray of shape (n_features,)
        Mean of the data.
    exponents_ : ndarray of shape (n_components,) or None
        γ_j of the experts "student".
    lower_bound_, lower_bounds_ : float, ndarray of shape (n_rounds,)
        Mean log density of all rows at the end, and of the rows of each round of updates; NaN if Z is not known.
    contrasts_ : ndarray of shape (n_rounds,)
        ⟨E⟩_samples − ⟨E⟩_data of each round, which is zero if samples and data have the same mean energy.
    acceptance_rates_ : ndarray of shape (n_rounds,)
        Mean acceptance rate of the chains in each round.
    step_size_ : float
        Step size of the chains at the end of the fit.
    log_partition_ : LogPartition or None
        log Z and its standard error, which is zero if Z is known; None if it was not estimated.
    n_rejected_ : int
        Number of proposals that were rejected because their energy was not finite.
    drift_ : float
        Distance that filters moved in the last quarter of learning, relative to their size.
    n_iter_ : int
        Number of updates that were made.
    converged_, outcome_
        As for :class:`multicause.MaximalCauses`.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import EnergyComponents
    >>> random = np.random.RandomState(0)
    >>> sources = random.laplace(size=(2000, 3))
    >>> X = sources @ random.normal(size=(3, 3))
    >>> model = EnergyComponents(max_iter=1000, random_state=0).fit(X)
    >>> correlations = np.abs(np.corrcoef(model.transform(X).T, sources.T)[:3, 3:])
    >>> bool((correlations.max(axis=0) > 0.95).all())  # each source has a component of its own
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "expert": [str, Expert, callable],
        "layers": [tuple, list],
        "nonlinearity": [StrOptions(set(NONLINEARITIES))],
        "sampler": [str, Sampler],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "persistent": ["boolean"],
        "whiten": [Options(str, set(KINDS)), None],
        "n_whitened": [Interval(Integral, 1, None, closed="left"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "optimizer": [str, Optimizer],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "final_learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "schedule": [StrOptions(set(optimizers.SCHEDULES))],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "init": [str, "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "estimate_partition": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "engine": [Engine, None],
    }
    _results = ("contrasts_", "acceptance_rates_", "drift_")
    _problem: EnergyProblem  # parts, learned parameters and whitening; ``partial_fit`` continues from it
    log_partition_: LogPartition | None
    n_features_in_: int

    def __init__(
        self,
        n_components: int | None = None,
        *,
        expert: str | Expert | Callable[[Any], Any] = "logistic",
        layers: tuple[int, ...] = (),
        nonlinearity: str = "sigmoid",
        sampler: str | Sampler = "hamiltonian",
        n_steps: int = 1,
        persistent: bool = False,
        whiten: str | None = "pca",
        n_whitened: int | None = None,
        batch_size: int | None = 100,
        optimizer: str | Optimizer = "momentum",
        learning_rate: float = 0.05,
        final_learning_rate: float | None = None,
        schedule: str = "linear",
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        init: str | ArrayLike = "random",
        max_iter: int = 5000,
        tol: float = 0.1,
        estimate_partition: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.n_components = n_components
        self.expert = expert
        self.layers = layers
        self.nonlinearity = nonlinearity
        self.sampler = sampler
        self.n_steps = n_steps
        self.persistent = persistent
        self.whiten = whiten
        self.n_whitened = n_whitened
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.final_learning_rate = final_learning_rate
        self.schedule = schedule
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.estimate_partition = estimate_partition
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    # ---------------------------------------------------------------------------------------------- learning

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: None = None,
        sample_weight: ArrayLike | None = None,
        *,
        resume: str | PathLike[str] | None = None,
    ) -> Self:
        """Learn the filters from X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; float32 stays float32, all other types become float64. Of data in files or on a cluster that exceed
            the memory budget of the engine, a random sample is learned from, with a warning.
        y : None
            Ignored, for compatibility with pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            Rows are drawn in proportion to their weights; with ``batch_size=None`` means are weighted by them.
        resume : path-like, optional
            Checkpoint of this fit, or the folder with its checkpoints, from which to resume.
        """
        rows, weights = self._rows_in_memory(X, sample_weight)
        settings, weighted = self.get_params(deep=False), sample_weight is not None
        with double_precision(), self._watched(resume, rows, weights) as session:
            data = self._engine().load(rows, weights)
            problem = fitting.begin(settings, data, rows, self._memory_budget, session.random)
            self._set(fitting.learn_from_rows(settings, problem, rows, weights, session, y=y, weighted=weighted))
            lacking = density.why_improper(self._problem) if self.estimate_partition else ""
            if self.log_partition_ is None and self.estimate_partition and not lacking:
                self.estimate_log_partition(random_state=session.random)
            known, mean = self.log_partition_, np.nan
            if known is not None:
                mean = problem.whitening.log_volume - known.value - density.mean_energy(self._problem, data)
            self.lower_bound_ = float(mean)
        warn(lacking)
        warn(fitting.warning_of_rejections(self.n_rejected_, single_precision=is_single_precision(self)))
        warn_of(Outcome(self.outcome_), self)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from more rows of a stream: one update for each ``batch_size`` rows of X, drawn as in ``fit``.

        Rows with weights count as in a pass of other models: as many as the sum of the weights, but at least as many as
        have a weight, and at most 16 times as many.

        The first call sets mean and whitening, so it should have enough typical rows; number of components, expert,
        layers, sampler and optimiser are also those of the first call. Learning rates fall over the first ``max_iter``
        updates and stay constant from then on. The partition function is not estimated.
        """
        first, settings = not hasattr(self, "components_"), self.get_params(deep=False)
        X = self._validate_rows(X, reset=first)
        random = check_random_state(self.random_state if first else self._stream_seed())
        with double_precision():
            X = X if first else X.astype(self.components_.dtype, copy=False)
            weights = validate_weights(sample_weight, X)
            if first:
                data = self._engine().load(X, weights)
                problem, n_rejected = fitting.begin(settings, data, X, self._memory_budget, random), 0
            else:
                problem, n_rejected = self._problem, self.n_rejected_
            found = fitting.learn_from_batch(settings, problem, X, weights, random)
        for name in ("lower_bounds_", "contrasts_", "acceptance_rates_"):
            found[name] = np.append([] if first else getattr(self, name), found[name])
        self._set(found)
        n_rejected = self.n_rejected_ - n_rejected
        warn(fitting.warning_of_rejections(n_rejected, single_precision=is_single_precision(self)))
        if self.outcome_ == Outcome.NON_FINITE.value:
            warn_of(Outcome.NON_FINITE, self)
        return self

    # ----------------------------------------------------------------------------------------- fitted models

    def transform(self, X: ArrayLike, *, out: Any = None) -> np.ndarray:
        """Return the hidden activities of all layers, concatenated: (n_samples, n_components + sum of layers).

        ``out`` is an array of that shape or the name of a ``.npy`` file, to which they are written block by block.
        """
        return self._by_rows(density.activities_of, X, out)

    def energy(self, X: ArrayLike) -> np.ndarray:
        """Compute the energy E(z) of each row: (n_samples,)."""
        return self._by_rows(density.energies_of, X)

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Compute the log density of each row in the space of X: (n_samples,).

        If Z is neither known nor estimated (``log_partition_`` is None), the density is not normalised: rows can be
        compared, models cannot. :meth:`estimate_log_partition` or ``estimate_partition=True`` normalises it.
        """
        energy = self.energy(X)
        log_partition = 0.0 if self.log_partition_ is None else self.log_partition_.value
        return (self._problem.whitening.log_volume - log_partition - energy).astype(energy.dtype)

    def score(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean of :meth:`score_samples`, weighted by ``sample_weight`` if it is given.

        It warns if densities are not normalised, as a grid search would compare them.
        """
        score = super().score(X, y, sample_weight)
        if self.log_partition_ is None:
            warnings.warn(
                "The density of this model is not normalised, so its score must not be compared with that of another "
                "model. Use estimate_partition=True, or estimate_log_partition() after the fit.",
                UserWarning,
                stacklevel=2,
            )
        return score

    def inverse_transform(self, S: ArrayLike) -> np.ndarray:
        """Return rows (n_samples, n_features) with these first-layer activities, by the pseudo-inverse of the filters.

        Activities of further layers may be included; they follow from the first and are not used.
        """
        check_is_fitted(self)
        S, H = np.asarray(S, dtype=self.components_.dtype), len(self.components_)
        if S.ndim != 2 or S.shape[1] not in (H, self._n_features_out):
            raise ValueError(f"Activities must have shape (n_samples, {self._n_features_out}); got {S.shape}.")
        if not np.isfinite(S).all():
            raise ValueError("Activities must be finite; they hold NaN or infinity.")
        return (S[:, :H] @ self.mixing_.T + self.mean_).astype(S.dtype)

    def estimate_log_partition(
        self,
        *,
        n_chains: int = 500,
        n_temperatures: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ) -> LogPartition:
        """Estimate log Z with its standard error by annealed importance sampling; exact if Z is known.

        The result is stored in ``log_partition_``, so that :meth:`score_samples` is normalised from now on. More
        temperatures improve each chain's estimate; use more if the standard error is not well below one.

        Raises ValueError if exp(−E) has no finite integral, which can happen with heavy tails in overcomplete models.
        """
        check_is_fitted(self)
        _check_count("n_chains", n_chains, least=2)
        _check_count("n_temperatures", n_temperatures)
        if not self._problem.method.energy.has_density(self._problem.updates.parameters):
            random = check_random_state(random_state)
            self.log_partition_ = density.estimate_log_partition(
                self._problem, int(n_chains), int(n_temperatures), self._memory_budget, random
            )
        return self.log_partition_  # type: ignore[return-value]

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows (n_samples, n_features) from the model, with their activities.

        If Z is known the rows are independent draws, else each is the end of a separate chain that followed a path of
        densities to the model. It warns if exp(−E) has no finite integral: the rows are then samples of no
        distribution.
        """
        check_is_fitted(self)
        _check_count("n_samples", n_samples)
        check_room(int(n_samples), sum(self.components_.shape), self.components_.dtype)
        if not density.draws_exactly(self._problem) and (lacking := density.why_improper(self._problem)):
            warnings.warn(lacking, UserWarning, stacklevel=2)
        X = density.draw_rows(self._problem, int(n_samples), self._memory_budget, check_random_state(random_state))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            return X, np.asarray(self.transform(X))

    # ------------------------------------------------------------------------------------------------- inside

    @property
    def _memory_budget(self) -> str | int:
        return getattr(self._engine(), "memory_budget", "2GiB")

    def _by_rows(self, function: Any, X: ArrayLike, out: Any = None) -> Any:
        check_is_fitted(self)
        if out is not None:
            check_out(out)
        if is_distributed(X):
            return self._lazily(partial(self._by_rows, function), X, out=out)
        data = self._load(X, None, reset=False)
        with double_precision():
            data, own = density.by_rows(function, self._problem, data)
            return data.collect(data.map(own)) if out is None else write_rows(out, data.n_rows, data.results(own))

    def _stream_seed(self) -> np.random.RandomState | int | None:
        """Return the random state of a later batch; an integer seed gives each batch different numbers."""
        if isinstance(self.random_state, Integral):
            return np.random.RandomState([int(self.random_state), self.n_iter_])
        return self.random_state

    def _set(self, attributes: dict[str, Any]) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)

    def _state(self) -> dict[str, Any]:
        return {**saved(self._problem), "log_partition": self.log_partition_}

    def _restore(self, state: dict[str, Any]) -> None:
        former = {"optimizer": optimizers.Momentum(self.momentum), "schedule": "linear"}
        with double_precision():
            problem = restored({**former, **state}, self.n_features_in_)
            self._set(density.fitted_attributes(problem, problem.updates))
        if state["log_partition"] is not None:
            self.log_partition_ = state["log_partition"]

    def _part_choices(self) -> dict[str, PartChoice]:
        return {
            **super()._part_choices(),
            "expert": PartChoice(energies.NAMES),
            "sampler": PartChoice(samplers.NAMES),
            "optimizer": PartChoice(optimizers.NAMES),
        }

    def _value_labels(self) -> ValueLabels:
        known = "log density" if self.log_partition_ is not None else "log density without normalisation"
        return ValueLabels("log density", "log density", known)

    @property
    def _n_features_out(self) -> int:
        layers = self._problem.updates.parameters.layers
        return int(len(self.components_) + sum(len(layer.bias) for layer in layers))

    def _advice(self, outcome: Outcome) -> Advice | None:
        return energy_advice_on(outcome, self)


def _check_count(name: str, value: Any, least: int = 1) -> None:
    """Raise ValueError unless a value is a whole number of at least ``least``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
