"""The scikit-learn shell of energy models: whitening, learning by contrastive divergence, densities, samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from multicause import energies, samplers
from multicause.arrays import bytes_from, double_precision, key_from
from multicause.callbacks.adapter import Seen
from multicause.energies import NONLINEARITIES, Energy, EnergyParameters, Expert, FunctionExpert, check_expert
from multicause.engines import Blocks, Engine
from multicause.learning import contrastive_divergence as cd
from multicause.learning.convergence import Outcome
from multicause.learning.whitening import KINDS, Whitening, find_whitening, whiten
from multicause.model import Block
from multicause.parts import resolve
from multicause.samplers import Equilibrium, Exact, Hamiltonian, MarkovChain, Sampler, annealed
from multicause.samplers.annealed import LogPartition
from multicause.shell import Shell, validate_weights, warn_of

# Standard deviation of the first filters' entries (EBM01 §4).
FIRST_FILTERS = 0.1
# The learning rate ends at this part of its first value (EBM01 §4 and §5: from 0.05 to 0.0005).
LAST_RATE = 0.01
# Chain of annealed importance sampling and of samples: fewer leapfrog steps for each of many densities.
PATH = Hamiltonian(10)
# Densities on the way to the model, and further steps, by which samples are drawn.
SAMPLING_PATH, SAMPLING_STEPS = 200, 200
# Arrays of the size of a row or of its activities that a step of a chain needs at once.
ARRAYS = 8


class EnergyEstimator(Shell):
    """An energy model: whitening, an energy, a way of learning. A named model adds its equations and its reference."""

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
        tol: float = 0.05,
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
    _results = ("contrasts_", "acceptance_rates_", "drift_")
    contrasts_: np.ndarray
    acceptance_rates_: np.ndarray
    log_partition_: LogPartition | None
    _method: cd.Method
    _course: cd.Course
    _whitening: Whitening

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
        """Learn the filters of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; float32 stays float32 inside, all else becomes float64.
        y : None
            Ignored, for compatibility with pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            Rows are drawn in proportion to their weights; with ``batch_size=None`` they count by them.
        resume : path-like, optional
            A checkpoint of this very fit, or the folder with its checkpoints, to go on from.
        """
        X = self._validate_rows(X, reset=True)
        weights = validate_weights(sample_weight, X)
        with double_precision(), self._watched(resume, X, weights) as fitting:
            random = fitting.random
            method, course, whitening = self._begin(X, weights, random)
            batch = len(X) if self.batch_size is None else self.batch_size
            length = cd.round_length(self.max_iter, batch * X.shape[1] * X.itemsize)
            n_rounds = -(-self.max_iter // length)
            fitting.watch(
                X,
                y,
                weights,
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
                watch=fitting,
                journal=fitting.journal,
            )
            self._keep(method, result.course, whitening)
            self.lower_bounds_ = result.bounds + whitening.log_volume
            self.contrasts_, self.acceptance_rates_ = result.contrasts, result.acceptances
            self.drift_, self.outcome_ = result.drift, result.outcome.value
            self.converged_ = result.outcome is Outcome.CONVERGED
            self.lower_bound_ = np.nan
            if self.log_partition_ is not None:
                self.lower_bound_ = float(np.average(self.score_samples(X), weights=weights))
            elif self.estimate_partition:
                self.estimate_log_partition(random_state=random)
        self._warn(result.outcome)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from more rows of a stream: one update for each ``batch_size`` rows of X, drawn as in a fit.

        The first call sets mean and whitening, so it should have enough typical rows. Learning rates fall over the
        first ``max_iter`` updates and stay as they are from then on.
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
                method, course, whitening = self._method, self._course, self._whitening
            n = 1 if self.batch_size is None else -(-len(X) // self.batch_size)
            before = int(course.n_updates)
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
            self._keep(method, result.course, whitening)
        outcome = Outcome.STOPPED if result.outcome is not Outcome.NON_FINITE else result.outcome
        self.lower_bounds_ = np.append(self.lower_bounds_, result.bounds.mean() + whitening.log_volume)
        self.contrasts_ = np.append(self.contrasts_, result.contrasts.mean())
        self.acceptance_rates_ = np.append(self.acceptance_rates_, result.acceptances.mean())
        self.lower_bound_, self.drift_ = float(self.lower_bounds_[-1]), result.drift
        self.converged_, self.outcome_ = False, outcome.value
        self._warn(outcome)
        return self

    # ------------------------------------------------------------------------------------------- what was learned

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Hidden activities, those of all layers side by side: (n_samples, n_components + sum of layers)."""
        return self._by_rows(_activities, X)

    def energy(self, X: ArrayLike) -> np.ndarray:
        """E(z) of each row: (n_samples,)."""
        return self._by_rows(_energies, X)

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Log density of each row in the space of X: (n_samples,).

        Where Z is neither known nor estimated (``log_partition_`` is None), the density is not normalised: rows can be
        compared, models cannot. :meth:`estimate_log_partition` or ``estimate_partition=True`` normalises it.
        """
        energy = self.energy(X)
        log_partition = 0.0 if self.log_partition_ is None else self.log_partition_.value
        return (self._whitening.log_volume - log_partition - energy).astype(energy.dtype)

    def inverse_transform(self, S: ArrayLike) -> np.ndarray:
        """Rows (n_samples, n_features) whose first layer has these activities, by the pseudo-inverse of the filters.

        Activities of further layers may be given too; they follow from the first and are not used.
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
        """log Z with its standard error, by annealed importance sampling; exact where Z is known.

        The result is kept in ``log_partition_``, so that :meth:`score_samples` is normalised from now on. More
        temperatures make each chain's estimate better; if the standard error is not well below one, use more.
        """
        check_is_fitted(self)
        _check_count("n_chains", n_chains, least=2)
        _check_count("n_temperatures", n_temperatures)
        if not self._energy.has_density(self._parameters):
            with double_precision():
                _, log_weights, n_rejected = self._anneal(n_chains, n_temperatures, 0, check_random_state(random_state))
            if not np.isfinite(log_weights).all():
                raise ValueError(
                    "Annealed importance sampling met energies that are not finite, so there is no estimate. They "
                    "must be finite everywhere; see the expert."
                )
            self.log_partition_ = annealed.log_partition(
                log_weights, self._spread, self._parameters.filters.shape[1], n_rejected
            )
        return self.log_partition_  # type: ignore[return-value]

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows (n_samples, n_features) from the model, with their activities.

        Where Z is known the rows are independent draws, else each is the end of a chain of its own that followed a path
        of densities to the model.
        """
        check_is_fitted(self)
        _check_count("n_samples", n_samples)
        random = check_random_state(random_state)
        with double_precision():
            if self._energy.has_density(self._parameters) and self._energy.expert.offers("draw"):
                Z = np.asarray(_draw(self._energy, self._parameters, key_from(random), int(n_samples)))
            else:
                Z = self._anneal(n_samples, SAMPLING_PATH, SAMPLING_STEPS, random)[0]
        X = (Z @ self._whitening.inverse.T + self._whitening.mean).astype(self.components_.dtype)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            return X, np.asarray(self.transform(X))

    # --------------------------------------------------------------------------------------------- persistence

    def _state(self) -> dict[str, Any]:
        return {
            "expert": self._energy.expert,
            "nonlinearity": self._energy.nonlinearity,
            "sampler": self._method.sampler,
            "n_steps": self._method.n_steps,
            "persistent": self._method.persistent,
            "course": jax.device_get(self._course),
            "whitening": self._whitening,
            "log_partition": self.log_partition_,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        energy, course, whitening = Energy(state["expert"], state["nonlinearity"]), state["course"], state["whitening"]
        method = cd.Method(energy, state["sampler"], state["n_steps"], state["persistent"])
        kinds = {"expert": Expert, "sampler": Sampler, "course": cd.Course, "whitening": Whitening}
        for name, kind in kinds.items():
            if not isinstance(state[name], kind):
                raise TypeError(f"{name} must be a {kind.__name__}; got {type(state[name]).__name__}")
        with double_precision():
            self._keep(method, course, whitening)
            rows = whiten(jnp.zeros((1, self.n_features_in_)), *self._on_device(whitening, np.dtype(float)))
            jax.eval_shape(energy.value, course.parameters, rows)  # shapes that do not fit each other raise
        if state["log_partition"] is not None:
            self.log_partition_ = state["log_partition"]

    # ------------------------------------------------------------------------------------------------- inside

    def _begin(
        self, X: np.ndarray, weights: np.ndarray, random: np.random.RandomState
    ) -> tuple[cd.Method, cd.Course, Whitening]:
        """Parts of this fit's own, the whitening, and the first parameters."""
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
        blocks = self._load(engine, X, weights, X.shape[1])
        whitening = find_whitening(engine, blocks, self.whiten, self.n_whitened)
        dimensions = len(whitening.matrix)
        units = dimensions if self.n_components is None else self.n_components
        self._check_memory(engine, units, X)
        energy = Energy(expert, self.nonlinearity)
        filters = jnp.asarray(self._first_filters(units, whitening, random), X.dtype)
        parameters = energy.initial(filters, sizes, 1 / whitening.variance, key_from(random))
        if not isinstance(sampler, MarkovChain):
            _check_closed_form(energy, parameters, sampler)
        method = cd.Method(energy, sampler, int(self.n_steps), bool(self.persistent))
        n_chains = len(X) if self.batch_size is None else self.batch_size
        return method, cd.begin(method, parameters, n_chains), whitening

    def _sizes(self) -> tuple[int, ...]:
        if not all(isinstance(size, Integral) and size >= 1 for size in self.layers):
            raise ValueError(
                f"layers must be a tuple with the number of units of each further layer; got {self.layers!r}. One "
                "layer of 20 units is written (20,)."
            )
        return tuple(int(size) for size in self.layers)

    def _first_filters(self, units: int, whitening: Whitening, random: np.random.RandomState) -> np.ndarray:
        dimensions, features = whitening.matrix.shape
        if isinstance(self.init, str):
            if self.init not in ("random", "unit"):
                raise ValueError(f"Unknown init {self.init!r}. Known: 'random', 'unit', or an array of filters.")
            # In units of the whitened data, whose scale without whitening is that of the data.
            filters = random.normal(size=(units, dimensions)) / np.sqrt(whitening.variance)
            if self.init == "random":
                return FIRST_FILTERS * filters
            return filters / np.linalg.norm(filters, axis=1, keepdims=True) / np.sqrt(whitening.variance)
        filters = np.asarray(self.init, dtype=float)
        if filters.shape != (units, features) or not np.isfinite(filters).all():
            raise ValueError(
                f"init must hold finite filters of shape (n_components, n_features) = {(units, features)}; got an "
                f"array of shape {filters.shape}."
            )
        return filters @ whitening.inverse

    def _batches(
        self, X: np.ndarray, weights: np.ndarray, random: np.random.RandomState
    ) -> Callable[[int], cd.Batches]:
        """Mini-batches as they are needed: rows drawn with replacement, in proportion to their weights."""
        if self.batch_size is None:
            everything = cd.Batches(jnp.asarray(X[None]), jnp.asarray(weights / weights.sum(), X.dtype))
            return lambda length: everything
        size = self.batch_size
        reached = np.cumsum(weights, dtype=float)
        shares = jnp.asarray(np.full(size, 1 / size, X.dtype))

        def draw(length: int) -> cd.Batches:
            places = np.searchsorted(reached, random.random_sample((length, size)) * reached[-1], side="right")
            return cd.Batches(jnp.asarray(X[np.minimum(places, len(X) - 1)]), shares)

        return draw

    def _rates(self, dtype: np.dtype, start: int, n: int) -> cd.Rates:
        last = self.learning_rate * LAST_RATE if self.final_learning_rate is None else self.final_learning_rate
        rates = cd.learning_rates(self.learning_rate, last, start, n, self.max_iter)
        as_array = partial(jnp.asarray, dtype=dtype)
        return cd.Rates(as_array(rates), as_array(self.momentum), as_array(self.weight_decay))

    def _stream_seed(self) -> np.random.RandomState | int | None:
        """Where the randomness of a later batch comes from: an integer seed gives each batch numbers of its own."""
        if isinstance(self.random_state, Integral):
            return np.random.RandomState([int(self.random_state), int(self._course.n_updates)])
        return self.random_state

    @staticmethod
    def _on_device(whitening: Whitening, dtype: np.dtype) -> tuple[jax.Array, jax.Array]:
        mean, matrix = whitening.cast(dtype)
        return jnp.asarray(mean), jnp.asarray(matrix)

    def _load(self, engine: Engine, X: np.ndarray, weights: np.ndarray, width: int) -> Blocks:
        """Blocks of rows whose temporary arrays are as wide as all units, and of double precision."""
        return engine.load(X, weights, _nothing, 8 * (width + ARRAYS * X.shape[1]))

    def _check_memory(self, engine: Engine, units: int, X: np.ndarray) -> None:
        """A mini-batch is worked on in one piece, so it must fit into the budget."""
        budget = getattr(engine, "memory_budget", None)
        rows = len(X) if self.batch_size is None else self.batch_size
        needed = rows * X.itemsize * ARRAYS * (units + sum(self._sizes()) + X.shape[1])
        if budget is not None and needed > bytes_from(budget):
            raise ValueError(
                f"A mini-batch of {rows} rows needs about {needed:,} bytes of temporary memory, more than the budget "
                f"of {budget!r}. Lower batch_size, raise it with engine=Local(memory_budget=...), or use float32."
            )

    def _anneal(
        self, n: int, n_temperatures: int, n_more: int, random: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Ends of chains to the model, their logarithmic weights, and rejected proposals.

        Chains go in groups that keep to the memory budget; each has a key of its own.
        """
        parameters, dtype = self._parameters, self.components_.dtype
        betas = jnp.asarray(annealed.temperatures(n_temperatures, dtype))
        spread, key = jnp.asarray(self._spread, dtype), key_from(random)
        for_steps, for_chains = jax.random.split(key)
        step_sizes = annealed.find_step_sizes(self._energy, PATH, parameters, spread, betas, for_steps)
        keys = jax.random.split(for_chains, n)
        per_chain = ARRAYS * dtype.itemsize * (sum(parameters.filters.shape) + self._n_features_out)
        budget = bytes_from(getattr(self._engine(), "memory_budget", "2GiB"))
        size = int(max(1, min(n, budget // per_chain)))
        groups = []
        for start in range(0, n, size):
            own = keys[start : start + size]
            missing = size - len(own)  # the last group is filled up, so that it needs no program of its own
            own = jnp.concatenate([own, keys[:missing]]) if missing else own
            end = annealed.anneal(self._energy, PATH, parameters, spread, betas, step_sizes, own, n_more)
            groups.append(jax.device_get(end))
        positions, log_weights = (
            np.concatenate([getattr(g, name) for g in groups])[:n] for name in groups[0]._fields[:2]
        )
        return positions, log_weights, int(sum(g.n_rejected for g in groups))

    @property
    def _energy(self) -> Energy:
        return self._method.energy

    @property
    def _parameters(self) -> EnergyParameters:
        return self._course.parameters

    @property
    def _spread(self) -> float:
        """Scale of the logistic variables that have the variance of a whitened dimension."""
        return float(annealed.UNIT_VARIANCE * np.sqrt(self._whitening.variance))

    def _keep(self, method: cd.Method, course: cd.Course, whitening: Whitening) -> None:
        """Store what was learned, on the host: JAX arrays would lose their double precision in a pickle."""
        for name, value in self._learned(method, jax.device_get(course), whitening).items():
            setattr(self, name, value)

    @staticmethod
    def _learned(method: cd.Method, course: cd.Course, whitening: Whitening) -> dict[str, Any]:
        filters = np.asarray(course.parameters.filters)
        dtype, precise = filters.dtype, filters.astype(float)
        log_partition = None
        if method.energy.has_density(course.parameters):
            value = float(_log_partition(method.energy, course.parameters))
            log_partition = LogPartition(value, 0.0, 0, 0)
        exponents = course.parameters.shapes[0].get("exponents")
        return {
            "_method": method,
            "_course": course,
            "_whitening": whitening,
            "components_": (precise @ whitening.matrix).astype(dtype),
            "whitened_components_": filters.copy(),
            "mixing_": (whitening.inverse @ np.linalg.pinv(precise)).astype(dtype),
            "mean_": whitening.mean.astype(dtype),
            "exponents_": None if exponents is None else np.array(exponents),
            "expert_": clone(method.energy.expert),
            "sampler_": clone(method.sampler),
            "step_size_": float(course.step_size),
            "n_iter_": int(course.n_updates),
            "n_rejected_": int(course.n_rejected),
            "log_partition_": log_partition,
        }

    def _so_far(self, method: cd.Method, whitening: Whitening, progress: cd.Progress, seen: Seen) -> dict[str, Any]:
        """Attributes of a copy of this estimator that is fitted as far as learning has come."""
        bounds, contrasts, acceptances = progress.reports.T
        return {
            **self._learned(method, jax.device_get(progress.course), whitening),
            "lower_bound_": seen.bounds[-1],
            "lower_bounds_": bounds + whitening.log_volume,
            "contrasts_": contrasts,
            "acceptance_rates_": acceptances,
            "converged_": False,
            "outcome_": Outcome.STOPPED.value,
        }

    def _warn(self, outcome: Outcome) -> None:
        if self.n_rejected_:
            warnings.warn(
                f"{self.n_rejected_} proposals of the sampler had an energy that is not finite and were rejected. (1) "
                "Check that the expert is finite everywhere; (2) lower the sampler's step_size; (3) use float64 data.",
                ConvergenceWarning,
                stacklevel=4,
            )
        warn_of(outcome)

    def _by_rows(self, function: Any, X: ArrayLike) -> Any:
        check_is_fitted(self)
        X = self._validate_rows(X, reset=False).astype(self.components_.dtype, copy=False)
        engine = self._engine()
        with double_precision():
            blocks = self._load(engine, X, np.ones(len(X), dtype=X.dtype), self._n_features_out)
            whitening = self._on_device(self._whitening, X.dtype)
            energy, parameters = self._energy, self._parameters
            mapped = engine.map(lambda block: function(energy, block, parameters, whitening), blocks)
            return engine.collect(mapped, blocks)

    @property
    def _n_features_out(self) -> int:
        return int(len(self.components_) + sum(len(layer.bias) for layer in self._parameters.layers))


@partial(jax.jit, static_argnums=0)
def _activities(energy: Energy, block: Block, parameters: EnergyParameters, whitening: Any) -> jax.Array:
    return jnp.concatenate(energy.activities(parameters, whiten(block.rows, *whitening)), axis=1)


@partial(jax.jit, static_argnums=0)
def _energies(energy: Energy, block: Block, parameters: EnergyParameters, whitening: Any) -> jax.Array:
    return energy.value(parameters, whiten(block.rows, *whitening))


@partial(jax.jit, static_argnums=(0, 3))
def _draw(energy: Energy, parameters: EnergyParameters, key: jax.Array, n_samples: int) -> jax.Array:
    return energy.draw(key, parameters, n_samples)


@partial(jax.jit, static_argnums=0)
def _log_partition(energy: Energy, parameters: EnergyParameters) -> jax.Array:
    return energy.log_partition(parameters)


@jax.jit
def _nothing(rows: jax.Array) -> jax.Array:
    """An energy needs no summary of its rows."""
    return jnp.zeros(len(rows), rows.dtype)


def _check_closed_form(energy: Energy, parameters: EnergyParameters, sampler: Sampler) -> None:
    """The samplers that need a known partition function get one."""
    name = "exact" if isinstance(sampler, Exact) else "equilibrium"
    lacking = energy.lacks_for_density(parameters)
    if not lacking and isinstance(sampler, Equilibrium) and not energy.expert.offers("draw"):
        lacking = f"the expert {type(energy.expert).__name__} has no method draw"
    if lacking:
        raise ValueError(
            f"sampler={name!r} needs a partition function that is known: one layer, at most as many components as "
            f"dimensions, and an expert that offers log_partition and draw; but {lacking}. Use a Markov chain, such as "
            "sampler='hamiltonian'."
        )


def _check_count(name: str, value: Any, least: int = 1) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")


def _summary(whitening: Whitening, progress: cd.Progress) -> str:
    report = progress.report
    bound = float(report.bound) + whitening.log_volume
    density = f"  log density {bound:.6f}" if np.isfinite(bound) else ""
    return (
        f"update {progress.n_updates:6d}  contrast {float(report.contrast):9.4f}  "
        f"acceptance {float(report.acceptance):5.3f}{density}"
    )
