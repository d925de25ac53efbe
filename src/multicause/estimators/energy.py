"""Scikit-learn estimator of energy-based models: settings, whitening and learning by contrastive divergence."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions

from multicause import energies, samplers
from multicause.arrays import bytes_from, double_precision, key_from
from multicause.callbacks.adapter import History
from multicause.energies import NONLINEARITIES, Energy, EnergyParameters, Expert, FunctionExpert, check_expert
from multicause.engines import Engine
from multicause.estimators.advice import Advice, energy_advice_on, is_single_precision
from multicause.estimators.base import outcome_of_batch, validate_weights, warn, warn_of
from multicause.estimators.energy_density import EnergyDensity
from multicause.outcomes import Outcome
from multicause.parts import PartChoice, resolve
from multicause.preparation.whitening import KINDS, WhiteningMap, find_whitening
from multicause.samplers import Equilibrium, Exact, MarkovChain, Sampler
from multicause.samplers.annealed import ARRAYS
from multicause.samplers.base import is_count
from multicause.solvers import contrastive_divergence as cd
from multicause.solvers.presentation import repetitions

# Standard deviation of the entries of the initial filters (EBM01 §4).
FIRST_FILTERS = 0.1
# Ratio of the final to the initial learning rate (EBM01 §4 and §5: from 0.05 to 0.0005).
LAST_RATE = 0.01


class EnergyEstimator(EnergyDensity):
    """Base class of energy-based estimators. A named model adds its equations and its reference."""

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
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "final_learning_rate": [Interval(Real, 0, None, closed="neither"), None],
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
        learning_rate: float = 0.05,
        final_learning_rate: float | None = None,
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
        self.learning_rate = learning_rate
        self.final_learning_rate = final_learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.estimate_partition = estimate_partition
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    lower_bounds_: np.ndarray
    contrasts_: np.ndarray
    acceptance_rates_: np.ndarray

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
        X, weights = self._rows_in_memory(X, sample_weight)
        with double_precision(), self._watched(resume, X, weights) as session:
            random = session.random
            method, course, whitening = self._begin(X, weights, random)
            length = cd.round_length(self.max_iter, self._rows_at_once(X) * X.shape[1] * X.itemsize)
            n_rounds = -(-self.max_iter // length)
            session.watch(
                X,
                y,
                None if sample_weight is None else weights,
                partial(self._so_far, method, whitening),
                bound=lambda progress: float(progress.report.bound) + whitening.log_volume,
                summarize=partial(_summary, whitening),
                n_tasks=n_rounds,
            )
            result = cd.learn(
                method,
                course,
                self._batches(X, weights, random),
                self._on_device(whitening, X.dtype),
                max_iter=self.max_iter,
                length=length,
                rates=partial(self._rates, X.dtype),
                tol=self.tol,
                key=key_from(random),
                watch=session,
                journal=session.journal,
            )
            self._keep(method, result.updates, whitening)
            self.lower_bounds_ = result.bounds + whitening.log_volume
            self.contrasts_, self.acceptance_rates_ = result.contrasts, result.acceptances
            self.drift_, self.outcome_ = result.drift, result.outcome.value
            self.converged_ = result.outcome is Outcome.CONVERGED
            lacking = self._lacks_for_integral() if self.estimate_partition else ""
            if self.log_partition_ is None and self.estimate_partition and not lacking:
                self.estimate_log_partition(random_state=random)
            known = self.log_partition_ is not None
            self.lower_bound_ = float(np.average(self.score_samples(X), weights=weights)) if known else np.nan
        warn(lacking)
        self._warn(result.outcome, self.n_rejected_)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from more rows of a stream: one update for each ``batch_size`` rows of X, drawn as in ``fit``.

        Rows with weights count as in a pass of other models: as many as the sum of the weights, but at least as many as
        have a weight, and at most 16 times as many.

        The first call sets mean and whitening, so it should have enough typical rows; number of components, expert,
        layers and sampler are also those of the first call. Learning rates fall over the first ``max_iter`` updates and
        stay constant from then on. The partition function is not estimated.
        """
        first = not hasattr(self, "components_")
        X = self._validate_rows(X, reset=first)
        random = check_random_state(self.random_state if first else self._stream_seed())
        with double_precision():
            if first:
                weights = validate_weights(sample_weight, X)
                method, course, whitening = self._begin(X, weights, random)
                self.lower_bounds_ = self.contrasts_ = self.acceptance_rates_ = np.empty(0)
            else:
                X = X.astype(self.components_.dtype, copy=False)
                weights = validate_weights(sample_weight, X)
                method, whitening = self._method, self._whitening
                course = cd.with_chains(self._course, self._rows_at_once(X))
            n_shown = int(np.rint(repetitions(weights).sum()))
            n = 1 if self.batch_size is None else -(-n_shown // self.batch_size)
            before, rejected_before = int(course.n_updates), int(course.n_rejected)
            result = cd.learn(
                method,
                jax.tree.map(jnp.asarray, course._replace(finite=jnp.ones((), bool))),
                self._batches(X, weights, random),
                self._on_device(whitening, X.dtype),
                max_iter=n,
                length=1,  # one program for batches of all sizes
                rates=lambda start, length: self._rates(X.dtype, before + start, length),
                tol=self.tol,
                key=key_from(random),
                watch=lambda progress: False,
            )
            self._keep(method, result.updates, whitening)
        outcome = outcome_of_batch(result.outcome is not Outcome.NON_FINITE)
        self.lower_bounds_ = np.append(self.lower_bounds_, result.bounds.mean() + whitening.log_volume)
        self.contrasts_ = np.append(self.contrasts_, result.contrasts.mean())
        self.acceptance_rates_ = np.append(self.acceptance_rates_, result.acceptances.mean())
        self.lower_bound_, self.drift_ = float(self.lower_bounds_[-1]), result.drift
        self.converged_, self.outcome_ = False, outcome.value
        self._warn(outcome if outcome is Outcome.NON_FINITE else None, self.n_rejected_ - rejected_before)
        return self

    # ------------------------------------------------------------------------------------------------- inside

    def _part_choices(self) -> dict[str, PartChoice]:
        """Return the meaning of names and None for each part, as :meth:`_begin` reads them."""
        return {
            **super()._part_choices(),
            "expert": PartChoice(energies.NAMES),
            "sampler": PartChoice(samplers.NAMES),
        }

    def _begin(
        self, X: np.ndarray, weights: np.ndarray, random: np.random.RandomState
    ) -> tuple[cd.Method, cd.UpdateState, WhiteningMap]:
        """Create the parts of this fit, the whitening, and the initial parameters."""
        expert: Any = self.expert
        if callable(expert) and not isinstance(expert, Expert | str | type):
            expert = FunctionExpert(expert)
        expert = resolve(expert, energies.NAMES, "expert", Expert)
        if type(expert) not in energies.NAMES.values():
            check_expert(expert)
        sampler = resolve(self.sampler, samplers.NAMES, "sampler", Sampler)
        sizes = self._sizes()
        if X.min() == X.max():
            raise ValueError(
                f"All values of X are equal ({X.flat[0]:.6g}), so there is nothing to learn. "
                "X needs at least two different values."
            )
        engine = self._engine()
        whitening = find_whitening(engine.load(X, weights), self.whiten, self.n_whitened)
        dimensions = len(whitening.matrix)
        units = dimensions if self.n_components is None else self.n_components
        self._check_memory(engine, units, X)
        energy = Energy(expert, self.nonlinearity)
        filters = jnp.asarray(self._first_filters(units, whitening, random), X.dtype)
        parameters = energy.initial(filters, sizes, 1 / whitening.variance, key_from(random))
        if not isinstance(sampler, MarkovChain):
            _check_closed_form(energy, parameters, sampler)
        method = cd.Method(energy, sampler, int(self.n_steps), bool(self.persistent))
        return method, cd.begin(method, parameters, self._rows_at_once(X)), whitening

    def _rows_at_once(self, X: np.ndarray) -> int:
        """Return the number of rows of one update, each of which has a chain."""
        return len(X) if self.batch_size is None else self.batch_size

    def _sizes(self) -> tuple[int, ...]:
        """Return the validated sizes of the further layers."""
        if not all(is_count(size) for size in self.layers):
            raise ValueError(
                f"layers must be a tuple with the number of units of each further layer; got {self.layers!r}. One "
                "layer of 20 units is written (20,)."
            )
        return tuple(int(size) for size in self.layers)

    def _first_filters(self, units: int, whitening: WhiteningMap, random: np.random.RandomState) -> np.ndarray:
        """Return the initial filters in whitened space."""
        dimensions, features = whitening.matrix.shape
        if isinstance(self.init, str):
            if self.init not in ("random", "unit"):
                raise ValueError(f"Unknown init {self.init!r}. Known: 'random', 'unit', or an array of filters.")
            # In units of the whitened data, whose scale without whitening is that of the data.
            filters = random.normal(size=(units, dimensions)) / np.sqrt(whitening.variance)
            if self.init == "random":
                return FIRST_FILTERS * filters
            return filters / np.linalg.norm(filters, axis=1, keepdims=True) / np.sqrt(whitening.variance)
        try:
            filters = np.asarray(self.init, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(f"init must be a name or an array of numbers: {error}") from error
        if filters.shape != (units, features) or not np.isfinite(filters).all():
            raise ValueError(
                f"init must hold finite filters of shape (n_components, n_features) = {(units, features)}; got an "
                f"array of shape {filters.shape}."
            )
        whitened = filters @ whitening.inverse
        rank = int(np.linalg.matrix_rank(whitened))
        if rank < min(units, dimensions):
            raise ValueError(
                f"init must hold {min(units, dimensions)} linearly independent filters; these have rank {rank} in the "
                f"{dimensions} whitened dimensions. Use other filters, or init='random'."
            )
        return whitened

    def _batches(
        self, X: np.ndarray, weights: np.ndarray, random: np.random.RandomState
    ) -> Callable[[int], cd.EnergyBatches]:
        """Return a function that draws mini-batches with replacement, in proportion to the weights."""
        if self.batch_size is None:
            everything = cd.EnergyBatches(jnp.asarray(X[None]), jnp.asarray(weights / weights.sum(), X.dtype))
            return lambda length: everything
        size = self.batch_size
        reached = np.cumsum(weights, dtype=float)
        shares = np.full(size, 1 / size, X.dtype)

        def draw(length: int) -> cd.EnergyBatches:
            places = np.searchsorted(reached, random.random_sample((length, size)) * reached[-1], side="right")
            return cd.EnergyBatches(X[np.minimum(places, len(X) - 1)], shares)

        return draw

    def _rates(self, dtype: np.dtype, start: int, n: int) -> cd.Rates:
        """Return learning rates, momentum and weight decay of some updates."""
        last = self.learning_rate * LAST_RATE if self.final_learning_rate is None else self.final_learning_rate
        rates = cd.learning_rates(self.learning_rate, last, start, n, self.max_iter)
        as_array = partial(np.asarray, dtype=dtype)
        return cd.Rates(as_array(rates), as_array(self.momentum), as_array(self.weight_decay))

    def _stream_seed(self) -> np.random.RandomState | int | None:
        """Return the random state of a later batch; an integer seed gives each batch different numbers."""
        if isinstance(self.random_state, Integral):
            return np.random.RandomState([int(self.random_state), int(self._course.n_updates)])
        return self.random_state

    def _check_memory(self, engine: Engine, units: int, X: np.ndarray) -> None:
        """Raise an error if a mini-batch, which is processed as a whole, exceeds the memory budget."""
        budget = getattr(engine, "memory_budget", None)
        rows = self._rows_at_once(X)
        needed = rows * X.itemsize * ARRAYS * (units + sum(self._sizes()) + X.shape[1])
        if budget is not None and needed > bytes_from(budget):
            raise ValueError(
                f"A mini-batch of {rows} rows needs about {needed:,} bytes of temporary memory, more than the budget "
                f"of {budget!r}. Lower batch_size, raise it with engine=Local(memory_budget=...), or use float32."
            )

    def _so_far(
        self, method: cd.Method, whitening: WhiteningMap, progress: cd.RoundProgress, seen: History
    ) -> dict[str, Any]:
        """Return the attributes of a copy of this estimator, fitted with the parameters learned so far."""
        bounds, contrasts, acceptances = progress.reports.T
        return {
            **self._learned(method, jax.device_get(progress.updates), whitening),
            "lower_bound_": seen.bounds[-1],
            "lower_bounds_": bounds + whitening.log_volume,
            "contrasts_": contrasts,
            "acceptance_rates_": acceptances,
            "converged_": False,
            "outcome_": Outcome.STOPPED.value,
        }

    def _warn(self, outcome: Outcome | None, n_rejected: int) -> None:
        """Warn of proposals rejected for a non-finite energy, and of outcomes that a user can act on.

        An outcome of None means that learning has not ended, as after a batch.
        """
        warn(
            f"{n_rejected} proposals of the sampler had an energy that is not finite and were rejected. (1) Check that "
            "the expert is finite everywhere; (2) lower the sampler's step_size"
            + ("; (3) use float64 data." if is_single_precision(self) else ".")
            if n_rejected
            else "",
            stacklevel=5,
        )
        if outcome is not None:
            warn_of(outcome, self)

    def _advice(self, outcome: Outcome) -> Advice | None:
        """Return advice on an outcome."""
        return energy_advice_on(outcome, self)


def _check_closed_form(energy: Energy, parameters: EnergyParameters, sampler: Sampler) -> None:
    """Raise ValueError if a sampler needs the partition function and it is unknown."""
    name = "exact" if isinstance(sampler, Exact) else "equilibrium"
    lacking = energy.lacks_for_density(parameters)
    if not lacking and isinstance(sampler, Equilibrium) and not energy.expert.offers("draw"):
        lacking = f"the expert {type(energy.expert).__name__} has no method draw"
    if lacking:
        raise ValueError(
            f"sampler={name!r} needs a known partition function: one layer, at most as many components as "
            f"dimensions, and an expert that offers log_partition and draw; but {lacking}. Use a Markov chain, such as "
            "sampler='hamiltonian'."
        )


def _summary(whitening: WhiteningMap, progress: cd.RoundProgress) -> str:
    """Return the line of a round for the terminal."""
    report = progress.report
    bound = float(report.bound) + whitening.log_volume
    density = f"  log density {bound:.6f}" if np.isfinite(bound) else ""
    return (
        f"update {progress.n_updates:6d}  contrast {float(report.contrast):9.4f}  "
        f"acceptance {float(report.acceptance):5.3f}{density}"
    )
