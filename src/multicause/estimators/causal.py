"""Base class of all causal models as scikit-learn estimators: fitting, online learning and wiring of parts."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, NamedTuple, Self

import jax
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, Options

from multicause import annealing as schedules
from multicause import posteriors, priors
from multicause.arrays import double_precision, key_from
from multicause.callbacks.adapter import History
from multicause.combinations.base import Combination
from multicause.em import online
from multicause.em.initialization import (
    InitialConditions,
    check_noise,
    choose_annealing,
    contradicting_signs,
    first_moments,
    lost_digits,
    starting_parameters,
)
from multicause.em.loop import learn
from multicause.em.memory import check_memory
from multicause.em.results import FitResult, Phase, Progress, start_of
from multicause.engines import Data, Engine
from multicause.engines.missing import check_columns
from multicause.estimators.advice import Advice
from multicause.estimators.base import outcome_of_batch, validate_weights, warn, warn_of
from multicause.estimators.fitted_causes import FittedCauses
from multicause.model import Model, Parameters, Statistics, interned
from multicause.noises import NAMES as NOISES
from multicause.noises import Noise
from multicause.outcomes import Outcome
from multicause.parts import PartChoice, resolve
from multicause.posteriors import Posterior, choose_posterior, default_posteriors
from multicause.priors import Bernoulli, Prior
from multicause.search.automatic import learn_and_repair, rows_to_search, search
from multicause.updates import NAMES as UPDATES
from multicause.updates import Update
from multicause.wiring import check, choose_update

LEARNABLE = ("components", "activity", "noise")
# Number of rows on which a user's own functions are tested before learning begins.
ROWS_TO_TRY = 64


class FitProblem(NamedTuple):
    """Model, data, initial parameters and settings of one fit."""

    model: Model
    data: Data
    search_data: Data  # a sample of the rows that is large enough to find the causes
    starts: Parameters  # with a leading axis of starts
    repairing: bool
    random: np.random.RandomState
    settings: dict[str, Any]  # max_iter, tol, key, watch and journal


class CausalEstimator(FittedCauses):
    """Base class of directed models of hidden causes. A named model adds its combination, defaults and reference."""

    _parameter_constraints: dict[str, list[Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "noise": [str, Noise],
        "combination": [Combination, None],
        "prior": [str, Prior, None],
        "posterior": [str, Posterior, None],
        "update": [str, Update, None],
        "annealing": [Options(str, {"auto"}), schedules.Annealing, None],
        "learn": [str, tuple, list],
        "activity": ["array-like", Interval(Real, 0, 1, closed="neither"), None],
        "noise_scale": [Interval(Real, 0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "repair": ["boolean", None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init": [str, "array-like", HasMethods("fit")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "engine": [Engine, None],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        noise: str | Noise = "gaussian",
        combination: Combination | None = None,
        prior: str | Prior | None = None,
        posterior: str | Posterior | None = None,
        update: str | Update | None = None,
        annealing: str | schedules.Annealing | None = "auto",
        learn: tuple[str, ...] = LEARNABLE,
        activity: float | ArrayLike | None = None,
        noise_scale: float | None = None,
        max_iter: int = 500,
        tol: float = 1e-5,
        repair: bool | None = None,
        n_init: int = 1,
        init: str | ArrayLike = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.n_components = n_components
        self.noise = noise
        self.combination = combination
        self.prior = prior
        self.posterior = posterior
        self.update = update
        self.annealing = annealing
        self.learn = learn
        self.activity = activity
        self.noise_scale = noise_scale
        self.max_iter = max_iter
        self.tol = tol
        self.repair = repair
        self.n_init = n_init
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    #: Names that ``learn`` may contain.
    _learnable: tuple[str, ...] = LEARNABLE
    #: Whether the rows that ``partial_fit`` learns from represent all batches so far, so that averages are not needed.
    _remembers_all = False
    _allows_missing = True
    lower_bounds_: np.ndarray
    temperatures_: np.ndarray
    rows_kept_: np.ndarray | None
    phases_: tuple[Phase, ...]

    @abstractmethod
    def _combination(self, noise: Noise) -> Combination:
        """Return the rule by which causes of this model combine, given the noise."""

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
        """Learn the model's parameters from X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data; float32 is computed in float32, all other dtypes in float64. NaN marks missing values: causes
            are learned from the likelihood of the observed values only.
        y : None
            Ignored, for compatibility with pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; a weight of k is equivalent to k repetitions of the row.
        resume : path-like, optional
            Checkpoint of this fit (see :class:`multicause.callbacks.Checkpoint`), or the folder with its checkpoints.
            Learning resumes from it and ends as if it had never been interrupted. A checkpoint of another model, other
            settings or other data raises an error.
        """
        data = self._load(X, sample_weight, reset=True)
        self._check_columns(data)
        self._threshold = None
        rows, weights = data.look()
        warn(lost_digits(rows))
        with double_precision(), self._watched(resume, data) as session:
            random = session.random
            self._preparation = self._prepare(data)
            data = self._condensed(self._prepared_data(data))
            model = self._wired(data)
            check_noise(model.noise, data)
            warn(contradicting_signs(model, rows))
            repairing = self.annealing == "auto" and model.prior.repairable if self.repair is None else self.repair
            data = self._in_blocks(data, model, max(self._n_starts, self.n_components if repairing else 1))
            check_memory(model, data)
            starts = self._starts(InitialConditions(model, first_moments(data), data, random, self._n_starts))
            self._validate_posterior(model, starts, data)
            session.watch(rows, y, None if sample_weight is None else weights, partial(self._so_far, model))
            settings: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "key": key_from(random)}
            settings |= {"watch": session, "journal": session.journal}
            search_data = self._search_data(model, data, random) if self.annealing == "auto" else data
            problem = FitProblem(model, data, search_data, starts, repairing, random, settings)
            result, annealing = self._learn(problem)
            self._keep(model, self._finished(model, result.parameters, result.statistics))
            self._keep_history(result, annealing)
            warn_of(result.outcome, self)
            self._keep_threshold(data)
            warn(model.posterior.diagnose(model, result.parameters))
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one more batch of a stream by a step of online EM at temperature one.

        The first batch determines the initial values (so it should be typical), later ones update running averages of
        the statistics; see :mod:`multicause.em.online`. A fitted model is learned further from its current parameters.
        """
        first = not hasattr(self, "components_")
        model, data = self._receive(X, sample_weight)
        with double_precision():
            data = self._in_blocks(data, model, 1, fitted=not first)
            if first:
                random = check_random_state(self.random_state)
                starts = self._starts(InitialConditions(model, first_moments(data), data, random, 1))
                parameters = start_of(starts)
                self._validate_posterior(model, starts, data)
            else:
                parameters = self._parameters
            before = None if first or self._remembers_all else self._online
            after, new, bound = online.step(model, data, parameters, before)
            finite = np.isfinite(bound) and all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(new))
            outcome = outcome_of_batch(finite)
            if finite:
                n_batches = 1 if first or self._online is None else self._online.n_batches + 1
                self._online, parameters = after._replace(n_batches=n_batches), self._finished(model, new)
            elif first or self._online is None:
                self._online = online.Online(after.averages, 0)
            self._keep(model, parameters)
            self._keep_threshold(data)
        if first:
            self.lower_bounds_ = self.temperatures_ = np.empty(0)
            self.rows_kept_, self.phases_ = None, ()
        self.lower_bounds_ = np.array([*self.lower_bounds_, bound])
        self.temperatures_ = np.array([*self.temperatures_, 1.0])
        self.lower_bound_, self.n_iter_ = float(bound), self._online.n_batches
        self.converged_, self.outcome_, self.annealing_ = False, outcome.value, schedules.NoAnnealing()
        if not finite:
            warn_of(outcome, self)
        return self

    # ----------------------------------------------------------------- hooks that a named model may override

    def _prepare(self, data: Data) -> dict[str, np.ndarray]:
        """Return the record that :meth:`_prepared` needs, computed from the training data."""
        return {}

    def _condensed(self, data: Data) -> Data:
        """Return the data to learn from: the given data, or fewer rows with the same sufficient statistics."""
        return data

    def _starts(self, initial: InitialConditions) -> Parameters:
        """Return initial parameters, with a leading axis of starts."""
        return self._starts_from(self.init, initial)

    def _learn(self, problem: FitProblem) -> tuple[FitResult, schedules.Annealing]:
        """Learn from all starts, and return the best result and the annealing schedule."""
        model, data, search_data, starts, repairing, random, settings = problem
        if self.annealing == "auto":
            how: dict[str, Any] = {"repairing": repairing, "random": random, **settings}
            return search(model, data, search_data, starts, annealed=isinstance(self.init, str), **how)
        annealing = choose_annealing(self.annealing)
        if repairing:
            result = learn_and_repair(model, data, starts, annealing=annealing, random=random, **settings)
        else:
            result = learn(model, data, starts, annealing=annealing, **settings)
        return result, annealing

    def _next_batch(self, data: Data, first: bool) -> Data:
        """Return the data that ``partial_fit`` learns from, given one more batch."""
        if first:
            self._preparation = self._prepare(data)
        return self._prepared_data(data)

    def _finished(self, model: Model, parameters: Parameters, statistics: Statistics | None = None) -> Parameters:
        """Return the parameters to store after learning; ``statistics`` are those of all data, if ``fit`` has them."""
        return parameters

    # ---------------------------------------------------------------------------------------------- internals

    @property
    def _n_starts(self) -> int:
        """Number of starts that ``fit`` learns from."""
        return self.n_init

    def _part_choices(self) -> dict[str, PartChoice]:
        """Return the parts that names and None stand for in :meth:`_wire`."""

        def combination() -> tuple[Combination]:
            return (self._combination(resolve(self.noise, NOISES, "noise", Noise)),)

        return {
            **super()._part_choices(),
            "noise": PartChoice(NOISES),
            "combination": PartChoice(defaults=combination),
            "prior": PartChoice(priors.NAMES, lambda: (Bernoulli(),)),
            "posterior": PartChoice(posteriors.NAMES, lambda: default_posteriors(self.n_components)),
            "update": PartChoice(UPDATES, lambda: (choose_update(*self._parts()),)),
        }

    def _wire(self, data: Data) -> Model:
        """Return the model of this fit, with parts from the constructor arguments, checked for compatibility."""
        prior, combination, noise, posterior = self._parts()
        self._check_learn()
        update = choose_update(prior, combination, noise, posterior, self.update)
        model = Model(prior, combination, noise, posterior, update, frozenset(self.learn), missing=data.has_missing)
        check(model, type(self), free=() if self.update is not None else ("update",))
        posterior.check(self.n_components)
        if self.repair and not prior.repairable:
            raise ValueError(f"Causes of {prior!r} cannot be repaired, because none is ever off; use repair=None.")
        posterior = posterior.bind(model, self.n_components, data.n_features, data.n_rows)
        return interned(replace(model, posterior=posterior))

    def _parts(self) -> tuple[Prior, Combination, Noise, Posterior]:
        """Return all parts except the update, from the constructor arguments and their defaults."""
        noise = resolve(self.noise, NOISES, "noise", Noise)
        prior = Bernoulli() if self.prior is None else resolve(self.prior, priors.NAMES, "prior", Prior)
        if self.posterior is None:
            posterior = choose_posterior(self.n_components, len(prior.strengths))
        else:
            posterior = resolve(self.posterior, posteriors.NAMES, "posterior", Posterior)
        return prior, self._combination(noise), noise, posterior

    def _receive(self, X: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Model, Data]:
        """Return the model and the data that it learns from, given one more batch of a stream."""
        first = not hasattr(self, "components_")
        X = self._validate_rows(X, reset=first)
        warn(lost_digits(X) if first else "", stacklevel=5)
        weights = validate_weights(sample_weight, X)
        if not first:
            X, weights = X.astype(self.components_.dtype), weights.astype(self.components_.dtype)
        data = self._engine().load(X, weights)
        if first:
            self._check_columns(data)
        data = self._next_batch(data, first)
        model = self._wired(data) if first else self._model
        if data.has_missing:
            model = interned(replace(model, missing=True))
        check_noise(model.noise, data)
        return model, data

    def _wired(self, data: Data) -> Model:
        """Return the model of this fit, with masks if values are missing."""
        model = self._wire(data)
        return interned(replace(model, missing=True)) if data.has_missing else model

    def _check_columns(self, data: Data) -> None:
        """Raise ValueError if a column has no observed value, so that nothing could be learned about it."""
        if data.has_missing and data.n_weighted:
            check_columns(data.missing, getattr(self, "feature_names_in_", None))

    def _check_learn(self) -> None:
        unknown = [name for name in self.learn if name not in self._learnable]
        if isinstance(self.learn, str) or unknown:
            raise ValueError(
                f"learn must be a tuple with names out of {self._learnable}; got {self.learn!r}. "
                "A tuple of one name is written ('components',)."
            )

    @staticmethod
    def _validate_posterior(model: Model, starts: Parameters, data: Data) -> None:
        """Test functions given by the user on some rows before learning begins."""
        some = np.nan_to_num(data.rows(np.arange(min(ROWS_TO_TRY, data.n_rows))))
        model.posterior.validate_on(np.asarray(starts.components[0]), some)

    def _search_data(self, model: Model, data: Data, random: np.random.RandomState) -> Data:
        """Return a sample of rows that is large enough to find the causes; all rows, if there are not many more."""
        sample = data.sample(rows_to_search(data.n_rows, self.n_components), random)
        n_starts = max(self._n_starts, self.n_components)
        return data if sample is data else self._arranged(sample, model, self.n_components, n_starts)

    def _starts_from(self, init: str | ArrayLike, initial: InitialConditions) -> Parameters:
        """Return default starts: components by ``init``, other parameters by the parts and constructor arguments."""
        activity, noise_scale = self.activity, self.noise_scale
        return starting_parameters(initial, self.n_components, init=init, activity=activity, noise_scale=noise_scale)

    def _keep_history(self, result: FitResult, annealing: schedules.Annealing) -> None:
        self._online = online.continued(result.statistics, result.n_rounds)
        self.annealing_ = annealing
        self.lower_bound_, self.lower_bounds_, self.phases_ = result.bound, result.bounds, result.phases
        self.temperatures_, self.rows_kept_ = result.temperatures, result.kept
        self.n_iter_, self.converged_, self.outcome_ = result.n_rounds, result.converged, result.outcome.value

    def _so_far(self, model: Model, progress: Progress, history: History) -> dict[str, Any]:
        """Return fitted attributes of the current state of learning, for a copy of this estimator."""
        best = progress.best
        parameters, statistics = jax.tree.map(
            lambda leaf: np.asarray(leaf)[best], (progress.parameters, progress.statistics)
        )
        # _finished may set attributes that only this model has, so it is called on a copy.
        finished = copy(self)
        parameters = jax.device_get(finished._finished(model, parameters, statistics))
        return {
            **self._learned(model, parameters),
            **{name: getattr(finished, name) for name in self._results if hasattr(finished, name)},
            "_model": model,
            "_parameters": parameters,
            "_preparation": finished._preparation,
            "_online": None if statistics is None else online.continued(statistics, history.n_iterations),
            "annealing_": choose_annealing(None if self.annealing == "auto" else self.annealing),
            "lower_bound_": float(progress.bound[best]),
            "lower_bounds_": np.array(history.bounds),
            "temperatures_": np.array(history.temperatures),
            "n_iter_": history.n_iterations,
            "converged_": False,
            "outcome_": Outcome.STOPPED.value,
        }

    def _advice(self, outcome: Outcome) -> Advice | None:
        """Return advice on an outcome, with that of the noise if the data do not suit it."""
        advice = super()._advice(outcome)
        more = self._model.noise.remedy(self.components_) if hasattr(self, "_model") else ""
        return advice._replace(remedies=(*advice.remedies, more)) if advice and more else advice

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = not self._accepts_negative()
        return tags

    def _accepts_negative(self) -> bool:
        noise = NOISES.get(self.noise) if isinstance(self.noise, str) else type(self.noise)
        return bool(getattr(noise, "means", (-np.inf,))[0] < 0)
