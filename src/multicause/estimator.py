"""The scikit-learn shell that all causal models share: validation, fitting, recognition, sampling, saving."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, Options
from sklearn.utils.validation import check_is_fitted

from multicause import posteriors, priors
from multicause.advice import Advice
from multicause.arrays import check_room, double_precision, key_from, starts_at_once
from multicause.callbacks.adapter import Seen
from multicause.combinations.base import Combination
from multicause.compatibility import check
from multicause.engines import Data, Engine
from multicause.engines.dask import is_distributed
from multicause.engines.missing import check_columns, filled, with_any_value
from multicause.learning import annealing as schedules
from multicause.learning import online, recognition
from multicause.learning.convergence import Outcome
from multicause.learning.em_loop import learn
from multicause.learning.expectation import evidence_threshold
from multicause.learning.initialization import (
    Outset,
    choose_annealing,
    first_moments,
    lost_digits,
    starting_parameters,
)
from multicause.learning.results import Fit, Phase, Progress, start_of
from multicause.learning.search import learn_and_repair, rows_to_search, search
from multicause.learning.updates import NAMES as UPDATES
from multicause.learning.updates.base import Update, choose_update
from multicause.model import Model, Parameters, Statistics, interned
from multicause.noises import NAMES as NOISES
from multicause.noises import Noise
from multicause.parts import PartChoice, resolve
from multicause.posteriors import Posterior, choose_posterior, default_posteriors
from multicause.priors import Bernoulli, Prior
from multicause.row_writing import check_out, write_rows
from multicause.shell import Shell, ValueLabels, outcome_of_batch, validate_weights, warn, warn_of

PARTS = {"prior": Prior, "combination": Combination, "noise": Noise, "posterior": Posterior, "update": Update}
LEARNABLE = ("components", "activity", "noise")
# Rows on which a user's own functions are tried before learning begins.
ROWS_TO_TRY = 64
# States that ``recognize`` lists for each row, unless the user asks for another number.
DEFAULT_TOP = 16


class Recognition(NamedTuple):
    """Which causes explain each row: the most probable states, best first.

    Probabilities are those among all states that the posterior considers; where not all of them are listed,
    a row's probabilities sum to less than one. Where a row has fewer states than others, its list ends with zeros.
    """

    states: np.ndarray  # (n, K, H) of zeros and ones
    probabilities: np.ndarray  # (n, K)
    log_evidence: np.ndarray  # (n,)


class SlabRecognition(NamedTuple):
    """Which causes explain each row, and how strong they are: a :class:`Recognition` with strengths of the causes."""

    states: np.ndarray  # (n, K, H) of zeros and ones, the spikes
    probabilities: np.ndarray  # (n, K)
    log_evidence: np.ndarray  # (n,)
    slabs: np.ndarray  # (n, K, H) posterior mean of s∘z given each state; zero where the spike is off


class FitProblem(NamedTuple):
    """What a model learns from, and how."""

    model: Model
    data: Data
    search_data: Data  # rows that are enough to find the causes
    starts: Parameters  # with a leading axis of starts
    repairing: bool
    random: np.random.RandomState
    settings: dict[str, Any]  # max_iter, tol, key, watch and journal


class CausalEstimator(Shell):
    """A directed model of hidden causes. A named model adds its combination, its defaults and its reference."""

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

    #: The record that ``recognize`` returns.
    _recognition_record: type = Recognition
    #: Names that ``learn`` may have.
    _learnable: tuple[str, ...] = LEARNABLE
    #: Whether what ``partial_fit`` learns from stands for all batches so far, so that none must be forgotten.
    _remembers_all = False
    _allows_missing = True
    #: Whether blocks must hold as few rows of weight zero as possible, as for learning in small batches.
    _exact_blocks = False
    lower_bounds_: np.ndarray
    temperatures_: np.ndarray
    rows_kept_: np.ndarray | None
    phases_: tuple[Phase, ...]
    _model: Model
    _parameters: Parameters
    _preparation: dict[str, np.ndarray] = {}
    _threshold: float | Data | None  # evidence_threshold_, or the data that it is computed from
    _online: online.Online | None  # None where a model has seen no statistics, as one that is still learning

    @abstractmethod
    def _combination(self, noise: Noise) -> Combination:
        """The rule by which causes of this model combine, given the noise."""

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
        """Learn the causes of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; float32 stays float32 inside, all else becomes float64. NaN marks values that were not observed:
            causes are learned from the likelihood of the observed values alone.
        y : None
            Ignored, for compatibility with pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of k counts like k repetitions of the row.
        resume : path-like, optional
            A checkpoint of this very fit (see :class:`multicause.callbacks.Checkpoint`), or the folder with its
            checkpoints. Learning goes on from there and ends as if it had never been interrupted. Another model, other
            settings or other data are refused.
        """
        data = self._load(X, sample_weight, reset=True)
        self._check_columns(data)
        self._threshold = None
        rows, weights = data.look()
        warn(lost_digits(rows))
        with double_precision(), self._watched(resume, data) as fitting:
            random = fitting.random
            self._preparation = self._prepare(data)
            data = self._condensed(data.transformed(self._preparer()))
            model = self._wired(data)
            data.each(lambda rows, weights: model.noise.check_data(with_any_value(rows)))
            repairing = self.annealing == "auto" and model.prior.repairable if self.repair is None else self.repair
            data = self._in_blocks(data, model, max(self._n_starts, self.n_components if repairing else 1))
            starts = self._starts(Outset(model, first_moments(data), data, random, self._n_starts))
            self._try_posterior(model, starts, data)
            fitting.watch(rows, y, None if sample_weight is None else weights, partial(self._so_far, model))
            settings: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "key": key_from(random)}
            settings |= {"watch": fitting, "journal": fitting.journal}
            search_data = self._search_data(model, data, random) if self.annealing == "auto" else data
            problem = FitProblem(model, data, search_data, starts, repairing, random, settings)
            result, annealing = self._learn(problem)
            self._keep(model, self._finished(model, result.parameters, result.statistics))
            self._keep_history(result, annealing)
            warn_of(result.outcome, self)
            self._keep_threshold(data)
            warn(model.posterior.remark(model, result.parameters))
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one more batch of a stream: a step of online EM at temperature one.

        The first batch sets the starting values (so it should be typical), later ones move running averages of
        the statistics; see :mod:`multicause.learning.online`. On a fitted model it continues from what was learned.
        """
        first = not hasattr(self, "components_")
        model, data = self._receive(X, sample_weight)
        with double_precision():
            data = self._in_blocks(data, model, 1, fitted=not first)
            if first:
                random = check_random_state(self.random_state)
                starts = self._starts(Outset(model, first_moments(data), data, random, 1))
                parameters = start_of(starts)
                self._try_posterior(model, starts, data)
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

    # ------------------------------------------------------------------------------------------- recognition

    def transform(self, X: ArrayLike, *, out: Any = None) -> np.ndarray:
        """Posterior mean of the causes, the probability of each to be active: (n_samples, n_components).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.
        out : array or path-like, optional
            Where to write the result, block by block, if it is too large for memory: an array of its shape, such as a
            memory map that can be written to, or the name of a ``.npy`` file. The file appears when it is whole, and is
            returned as a memory map.
        """
        return self._by_rows(recognition.mean_causes, X, out=out)

    def reconstruct(self, X: ArrayLike) -> np.ndarray:
        """Posterior mean of the data, X as its causes explain it: (n_samples, n_features)."""
        return self._unprepared(self._by_rows(recognition.mean_data, X))

    def impute(self, X: ArrayLike) -> np.ndarray:
        """X with the posterior mean in place of each value that was not observed: (n_samples, n_features).

        Observed values are kept as they are, and the result has the dtype of X if that is a floating-point one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, in which NaN marks values that were not observed.
        """
        check_is_fitted(self)
        if is_distributed(X):
            return self._lazily(self.impute, X)
        means = self._unprepared(self._by_rows(recognition.imputed_data, X))
        return filled(self._validate_rows(X, reset=False), means)

    def recognize(self, X: ArrayLike, top: int | None = DEFAULT_TOP) -> Recognition:
        """The most probable states of each row, with their probabilities and the log evidence.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.
        top : int or None, default=16
            How many states to list for each row; None lists all that the posterior considers.
        """
        check_is_fitted(self)
        n_states = self._recognizer.posterior.n_states(len(self.components_))
        if top is not None and (not isinstance(top, Integral) or top < 1):
            raise ValueError(f"top must be a positive number of states, or None for all; got {top!r}.")
        top = n_states if top is None else min(int(top), n_states)
        return self._recognition_record(*self._by_rows(recognition.best_states, X, top))

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Log evidence log p(y) of each row where the posterior is exact, its lower bound otherwise: (n_samples,).

        Where a posterior is a single choice of causes v, as in sparse codes and K-means, it is log p(v, y).
        """
        return self._by_rows(recognition.log_evidence, X)

    def free_energy(self, X: ArrayLike) -> np.ndarray:
        """F = ⟨log p(s, y)⟩ + H(q) of each row, which learning raises (TN10 eq. 10.6): (n_samples,).

        It equals :meth:`score_samples` where recognition is exact. Physics calls −F the free energy.
        """
        return self._by_rows(recognition.free_energy, X)

    def is_explained(self, X: ArrayLike) -> np.ndarray:
        """Which rows the considered states explain as well as those that the model has learned from: (n_samples,).

        The others probably have more active causes than the posterior considers (the classes of ET10 §3.1). With the
        exact posterior, all rows are explained. After ``partial_fit``, the last batch is the measure.
        """
        check_is_fitted(self)
        if not hasattr(self, "evidence_threshold_"):
            raise ValueError(
                "A model that is still learning, as in a checkpoint, does not know how well it explains its data. "
                "Finish it with fit(X, resume=...)."
            )
        return self.score_samples(X) >= self.evidence_threshold_

    def score_single_causes(self, X: ArrayLike) -> np.ndarray:
        """log p(s_h, y) of the states with one active cause, up to a constant of each row: (n_samples, H).

        Causes that are not switched on and off, or whose probability depends on higher causes, have no such states.
        """
        check_is_fitted(self)
        if not self._model.prior.has_singles:
            raise TypeError(
                f"{type(self).__name__} has no states with a single active cause under its prior, "
                f"{self._model.prior!r}. Use transform for its causes."
            )
        return self._by_rows(recognition.single_causes, X)

    def inverse_transform(self, S: ArrayLike) -> np.ndarray:
        """Mean of the data for given causes (n_samples, n_components): (n_samples, n_features)."""
        check_is_fitted(self)
        S = np.asarray(S, dtype=self.components_.dtype)
        if not np.isfinite(S).all():
            raise ValueError("Causes must be finite; they hold NaN or infinity.")
        if S.ndim != 2 or S.shape[1] != len(self.components_):
            raise ValueError(
                f"Causes must have shape (n_samples, {len(self.components_)}), one column per cause; got {S.shape}."
            )
        with double_precision():
            means = recognition.combine(self._model, self._parameters, jnp.asarray(S))
        return self._unprepared(np.asarray(means))

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw new data from the model: rows (n_samples, n_features) and their causes (n_samples, n_components)."""
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a positive integer; got {n_samples!r}.")
        check_room(int(n_samples), sum(self.components_.shape), self.components_.dtype)
        with double_precision():
            key = key_from(check_random_state(random_state))
            rows, causes = recognition.sample(self._model, self._parameters, key, int(n_samples))
        return self._unprepared(np.asarray(rows)), np.asarray(causes)

    # --------------------------------------------------------------------------------------------- persistence

    def _state(self) -> dict[str, Any]:
        """What :meth:`_restore` needs beyond constructor arguments and history."""
        return {
            "parts": {name: getattr(self._model, name) for name in PARTS},
            "learn": self._model.learn,
            "missing": self._model.missing,
            "components": self._parameters.components,
            "prior": self._parameters.prior,
            "noise": self._parameters.noise,
            "posterior": self._parameters.posterior,
            "preparation": self._preparation,
            "online": online.saved(self._online),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        """Become the fitted model whose :meth:`_state` this is."""
        model = Model(**state["parts"], learn=frozenset(state["learn"]), missing=bool(state.get("missing", False)))
        for name, base in PARTS.items():
            if not isinstance(getattr(model, name), base):
                raise TypeError(f"{name} must be a {base.__name__}; got {getattr(model, name)!r}")
            getattr(model, name).validate()
        check(model, type(self))
        with double_precision():
            self._preparation = state["preparation"]
            parameters = Parameters(state["components"], state["prior"], state["noise"], state["posterior"])
            model.posterior.check(len(parameters.components))
            inside, outside = (1, parameters.components.shape[1]), (1, self.n_features_in_)
            row = self._preparer()(np.zeros(outside, dtype=parameters.components.dtype))
            if row.shape != inside or self._unprepared(row).shape != outside:
                raise ValueError(f"rows of {self.n_features_in_} features do not fit its components")
            self._online = online.restored(model, parameters, **(state["online"] or {"averages": None, "n_batches": 0}))
            self._keep(model, parameters)

    # ------------------------------------------------------------------------- what a named model may change

    def _prepare(self, data: Data) -> dict[str, np.ndarray]:
        """What :meth:`_prepared` has to know, from the data that are learned from."""
        return {}

    @staticmethod
    def _prepared(record: dict[str, np.ndarray], rows: np.ndarray) -> np.ndarray:
        """Rows as the parts see them, for example without their mean, from what :meth:`_prepare` has found."""
        return rows

    def _preparer(self) -> Any:
        """Return a function that prepares rows, and that other processes can use without this estimator."""
        return partial(type(self)._prepared, self._preparation)

    def _unprepared(self, rows: np.ndarray) -> np.ndarray:
        """The way back."""
        return rows

    def _condensed(self, data: Data) -> Data:
        """Rows and weights that are learned from: these, or fewer from which the same is learned."""
        return data

    def _starts(self, outset: Outset) -> Parameters:
        """Parameters before learning, with a leading axis of starts."""
        return self._starts_from(self.init, outset)

    def _learn(self, problem: FitProblem) -> tuple[Fit, schedules.Annealing]:
        """Run EM from all starts."""
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
        """Rows and weights that ``partial_fit`` learns from, given those of one more batch."""
        if first:
            self._preparation = self._prepare(data)
        return data.transformed(self._preparer())

    def _finished(self, model: Model, parameters: Parameters, statistics: Statistics | None = None) -> Parameters:
        """Parameters that are kept after learning; ``statistics`` are those of all data, if ``fit`` has seen them."""
        return parameters

    # ------------------------------------------------------------------------------------------------- inside

    @property
    def _n_starts(self) -> int:
        """How many starts ``fit`` learns from."""
        return self.n_init

    @property
    def _recognizer(self) -> Model:
        """The model with which causes of rows are recognized: the one that was learned."""
        return self._model

    def _part_choices(self) -> dict[str, PartChoice]:
        """Return what names and None stand for, as :meth:`_wire` reads them."""

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

    def _value_labels(self) -> ValueLabels:
        """Those of the posteriors that have learned and that recognize."""
        bound = self._model.posterior.bound_label
        return ValueLabels(bound, bound, self._recognizer.posterior.evidence_label)

    def _wire(self, data: Data) -> Model:
        """Return parts of this fit's own, made from the constructor's words and checked against each other."""
        prior, combination, noise, posterior = self._parts()
        self._check_learn()
        update = choose_update(prior, combination, noise, posterior, self.update)
        model = Model(prior, combination, noise, posterior, update, frozenset(self.learn), missing=data.has_missing)
        check(model, type(self), free=() if self.update is not None else ("update",))
        posterior.check(self.n_components)
        if self.repair and not prior.repairable:
            raise ValueError(f"Causes of {prior!r} cannot be repaired, because none is ever off; use repair=None.")
        posterior = posterior.resolved(model, self.n_components, data.n_features, data.n_rows)
        return interned(replace(model, posterior=posterior))

    def _parts(self) -> tuple[Prior, Combination, Noise, Posterior]:
        """Return all parts but the update, as the constructor's words and their defaults say."""
        noise = resolve(self.noise, NOISES, "noise", Noise)
        prior = Bernoulli() if self.prior is None else resolve(self.prior, priors.NAMES, "prior", Prior)
        if self.posterior is None:
            posterior = choose_posterior(self.n_components)
        else:
            posterior = resolve(self.posterior, posteriors.NAMES, "posterior", Posterior)
        return prior, self._combination(noise), noise, posterior

    def _receive(self, X: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Model, Data]:
        """The model, and what it learns from, when one more batch of a stream comes."""
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
        data.each(lambda rows, weights: model.noise.check_data(with_any_value(rows)))
        return model, data

    def _wired(self, data: Data) -> Model:
        """Return the model of this fit, with masks if values are missing."""
        model = self._wire(data)
        return interned(replace(model, missing=True)) if data.has_missing else model

    def _check_columns(self, data: Data) -> None:
        """Raise ValueError if a column has no observed value, so that nothing could be learned of it."""
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
    def _try_posterior(model: Model, starts: Parameters, data: Data) -> None:
        """Try a user's own functions before learning begins."""
        some = np.nan_to_num(data.rows(np.arange(min(ROWS_TO_TRY, data.n_rows))))
        model.posterior.try_out(np.asarray(starts.components[0]), some)

    def _in_blocks(self, data: Data, model: Model, n_starts: int, *, fitted: bool = False) -> Data:
        """Return data in blocks within the memory budget, for components that are to be learned or are ``fitted``."""
        return self._arranged(data, model, len(self.components_) if fitted else self.n_components, n_starts)

    def _arranged(self, data: Data, model: Model, n_components: int, n_starts: int) -> Data:
        """Return the same data in blocks that suit a model."""
        at_once = starts_at_once(n_starts)
        size = (n_components, data.n_features, data.dtype.itemsize)
        per_row = model.posterior.bytes_per_row(*size, linear=model.linear)
        per_row += model.posterior.bytes_of_mask(*size) if model.missing else 0
        fixed = model.posterior.bytes_of_states(*size)
        summarize = partial(recognition.summarize, model)
        return data.arranged(summarize, at_once * per_row, at_once * fixed, exact=self._exact_blocks)

    def _keep_threshold(self, data: Data) -> None:
        """Remember what :attr:`evidence_threshold_` is computed from: no rows, if all states are considered."""
        self._threshold = -np.inf if self._recognizer.posterior.max_active is None else data.released()

    @property
    def evidence_threshold_(self) -> float:
        """Evidence that as many rows of the training data reach as the states considered should explain.

        It takes a pass over these rows, when it is first asked for; until then the model holds on to them.
        """
        threshold = self.__dict__.get("_threshold")
        if threshold is None:
            raise AttributeError(
                f"This {type(self).__name__} has no evidence_threshold_, because it is still learning."
            )
        if isinstance(threshold, Data):
            with double_precision():
                self._threshold = threshold = self._evidence_threshold(threshold)
        return threshold

    @evidence_threshold_.setter
    def evidence_threshold_(self, threshold: float) -> None:
        self._threshold = threshold

    def __getstate__(self) -> dict[str, Any]:
        """Compute what needs the training data, which are not part of a pickle."""
        if isinstance(self.__dict__.get("_threshold"), Data):
            _ = self.evidence_threshold_
        return super().__getstate__()

    def _evidence_threshold(self, data: Data) -> float:
        recognizer = self._recognizer
        data = self._arranged(data, recognizer, len(self.components_), 1)
        return evidence_threshold(recognizer, data, self._parameters)

    def _search_data(self, model: Model, data: Data, random: np.random.RandomState) -> Data:
        """Return as many rows as are needed to find the causes; all, if there are not many more."""
        sample = data.sample(rows_to_search(data.n_rows, self.n_components), random)
        n_starts = max(self._n_starts, self.n_components)
        return data if sample is data else self._arranged(sample, model, self.n_components, n_starts)

    def _starts_from(self, init: str | ArrayLike, outset: Outset) -> Parameters:
        """Shared starts: components by ``init``, all else by the parts and the constructor's words."""
        activity, noise_scale = self.activity, self.noise_scale
        return starting_parameters(outset, self.n_components, init=init, activity=activity, noise_scale=noise_scale)

    def _keep(self, model: Model, parameters: Parameters) -> None:
        """Store what was learned, on the host: JAX arrays would lose their double precision in a pickle.

        What follows from parameters follows from those on the host too, so that a loaded model has it to the last bit.
        """
        self._model, self._parameters = model, jax.device_get(parameters)
        for name, value in self._learned(model, self._parameters).items():
            setattr(self, name, value)

    @staticmethod
    def _learned(model: Model, parameters: Parameters) -> dict[str, Any]:
        variance = parameters.noise.get("variance")
        return {
            "components_": np.array(parameters.components),
            "activity_": np.array(model.prior.activity(parameters.prior)),
            "noise_variance_": None if variance is None else np.asarray(variance)[()],
            "posterior_": clone(model.posterior),
            "update_": clone(model.update),
        }

    def _keep_history(self, result: Fit, annealing: schedules.Annealing) -> None:
        self._online = online.continued(result.statistics, result.n_rounds)
        self.annealing_ = annealing
        self.lower_bound_, self.lower_bounds_, self.phases_ = result.bound, result.bounds, result.phases
        self.temperatures_, self.rows_kept_ = result.temperatures, result.kept
        self.n_iter_, self.converged_, self.outcome_ = result.n_rounds, result.converged, result.outcome.value

    def _so_far(self, model: Model, progress: Progress, seen: Seen) -> dict[str, Any]:
        """Attributes of a copy of this estimator that is fitted as far as learning has come."""
        best = progress.best
        parameters, statistics = jax.tree.map(
            lambda leaf: np.asarray(leaf)[best], (progress.parameters, progress.statistics)
        )
        # What only this model has is stored in passing, where it is finished.
        finished = copy(self)
        parameters = jax.device_get(finished._finished(model, parameters, statistics))
        return {
            **self._learned(model, parameters),
            **{name: getattr(finished, name) for name in self._results if hasattr(finished, name)},
            "_model": model,
            "_parameters": parameters,
            "_preparation": finished._preparation,
            "_online": None if statistics is None else online.continued(statistics, seen.n_iterations),
            "annealing_": choose_annealing(None if self.annealing == "auto" else self.annealing),
            "lower_bound_": float(progress.bound[best]),
            "lower_bounds_": np.array(seen.bounds),
            "temperatures_": np.array(seen.temperatures),
            "n_iter_": seen.n_iterations,
            "converged_": False,
            "outcome_": Outcome.STOPPED.value,
        }

    def _by_rows(
        self, function: Any, X: ArrayLike, *arguments: Any, model: Model | None = None, out: Any = None
    ) -> Any:
        """Apply a compiled function of recognition to X, block by block, with this or another model."""
        check_is_fitted(self)
        model = self._recognizer if model is None else model
        if out is not None:
            check_out(out)
        if is_distributed(X):
            if out is not None:
                raise TypeError(
                    "The result for a dask array is a dask array: leave out=, and use its to_zarr or store."
                )
            return self._lazily(partial(self._by_rows, function, model=model), X, *arguments)
        data = self._load(X, None, reset=False)
        data = data.transformed(partial(np.asarray, dtype=self.components_.dtype)).transformed(self._preparer())
        noise = model.noise
        data.each(lambda rows, weights: noise.check_data(with_any_value(rows)))
        model = interned(replace(model, missing=data.has_missing))
        with double_precision():
            data = self._in_blocks(data, model, 1, fitted=True)

            def own(block: Any) -> Any:
                return function(model, block, self._parameters, *arguments)

            return data.collect(data.map(own)) if out is None else write_rows(out, data.n_rows, data.results(own))

    def _lazily(self, function: Any, X: Any, *arguments: Any) -> Any:
        """Return a dask array of a function's results, which are computed where the chunks of X are."""
        example = function(np.zeros((1, self.n_features_in_), dtype=self.components_.dtype), *arguments)
        if not isinstance(example, np.ndarray):
            raise TypeError(
                "Lists of states are made of rows in the memory of this process alone. Give some rows of the dask "
                "array, such as X[:1000].compute(), or use transform."
            )
        X = X.to_dask_array() if hasattr(X, "to_dask_array") else X
        X = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
        columns = {"chunks": (X.chunks[0], *((size,) for size in example.shape[1:]))}
        dropped = {"drop_axis": 1} if example.ndim == 1 else {}
        return X.map_blocks(function, *arguments, dtype=example.dtype, meta=example[:0], **columns, **dropped)

    def _advice(self, outcome: Outcome) -> Advice | None:
        """Add what the noise has to say about data that do not suit it."""
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
