"""State of a fitted causal model: its parts and parameters, attributes that follow from them, and what files hold."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any, Self

import jax
import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from multicause.arrays import double_precision
from multicause.combinations import Combination
from multicause.compatibility import Rule
from multicause.em import online
from multicause.em.solver import Solver
from multicause.estimators.base import BaseModel, ValueLabels
from multicause.model import FittedModel, Model
from multicause.noises import Noise
from multicause.posteriors import Posterior
from multicause.preparation.base import Preparation
from multicause.priors import Prior
from multicause.records import Parameters
from multicause.updates import Update
from multicause.wiring import check

ROLES_OF_PARTS = {"prior": Prior, "combination": Combination, "noise": Noise, "posterior": Posterior, "update": Update}


class FittedState(BaseModel):
    """Base class with the parts and parameters of a fitted causal model."""

    n_components: int
    _model: Model
    _parameters: Parameters
    _preparation: dict[str, np.ndarray] = {}
    _online: online.Online | None  # None if a model has no statistics, such as one that is still learning

    def _preparer(self) -> Preparation:
        """Return how rows are prepared before learning and recognition."""
        return Preparation()

    @abstractmethod
    def _solver(self) -> Solver:
        """Return the learning algorithm, which also says with which model causes are inferred."""

    def _derived(self, parameters: Parameters) -> dict[str, Any]:
        """Return fitted attributes that only this model has, as a function of its parameters."""
        return {}

    @property
    def fitted_model_(self) -> FittedModel:
        """Return the parts and parameters of the fitted model."""
        check_is_fitted(self)
        return FittedModel(self._model, self._recognizer, self._parameters)

    def with_fitted_model(self, parts: Model, parameters: Parameters) -> Self:
        """Return a copy of this fitted model with other parts or parameters, as if it had learned these."""
        other = copy(self).set_params(n_components=len(parameters.components))
        other._set(other._attributes(parts, parameters, other._preparation))
        return other

    @property
    def has_states(self) -> bool:
        """Return whether causes are on or off, so that ``recognize`` of a fitted model lists states."""
        return self.fitted_model_.parts.prior.has_states

    @property
    def has_probabilities(self) -> bool:
        """Return whether ``transform`` returns probabilities of causes rather than real values."""
        return self.has_states and not self.fitted_model_.parts.prior.has_strengths

    @property
    def adds_strengths(self) -> bool:
        """Return whether causes have a strength of any size and add up."""
        parts = self.fitted_model_.parts
        return parts.prior.has_strengths and parts.combination.rule is Rule.SUM

    def typical_rows(self, causes: np.ndarray) -> np.ndarray:
        """Return rows of data in which each of the causes (n_causes, D) occurs alone, as the noise has them."""
        return self.fitted_model_.parts.noise.typical_rows(causes)

    @property
    def _recognizer(self) -> Model:
        return self._solver().recognizer(self._model, *self._parameters.components.shape)

    def _result_names(self) -> tuple[str, ...]:
        return self._solver().result_names

    def _unprepared(self, rows: np.ndarray) -> np.ndarray:
        return self._preparer().undo(self._preparation, rows)

    def value_labels(self) -> ValueLabels:
        """Return labels of bounds and scores, from the posteriors of learning and recognition."""
        bound = self._model.posterior.bound_label
        return ValueLabels(bound, bound, self._recognizer.posterior.evidence_label)

    def _attributes(self, model: Model, parameters: Parameters, record: dict[str, np.ndarray]) -> dict[str, Any]:
        """Return the attributes of a fitted model, which follow from model, parameters and the record of preparation.

        Parameters are stored on the host: JAX arrays would lose their double precision in a pickle. Attributes are
        computed from them on the host too, so that those of a loaded model are identical.
        """
        parameters, preparer = jax.device_get(parameters), self._preparer()
        components, variance = np.array(parameters.components), parameters.noise.get("variance")
        return {
            "_model": model,
            "_parameters": parameters,
            "_preparation": record,
            "components_": preparer.components_of(record, components),
            "activity_": np.array(model.prior.activity(parameters.prior)),
            "noise_variance_": None if variance is None else np.asarray(variance)[()],
            **model.prior.fitted(parameters.prior),
            "posterior_": clone(model.posterior),
            "update_": clone(model.update),
            **preparer.attributes(record, components.dtype),
            **self._derived(parameters),
        }

    def _state(self) -> dict[str, Any]:
        """Return the state that :meth:`_restore` needs in addition to constructor arguments and history."""
        return {
            "parts": {name: getattr(self._model, name) for name in ROLES_OF_PARTS},
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
        """Set the attributes of the fitted model with the given :meth:`_state`."""
        model = Model(**state["parts"], learn=frozenset(state["learn"]), missing=bool(state.get("missing", False)))
        for name, base in ROLES_OF_PARTS.items():
            if not isinstance(getattr(model, name), base):
                raise TypeError(f"{name} must be a {base.__name__}; got {getattr(model, name)!r}")
            getattr(model, name).validate()
        check(model, type(self))
        with double_precision():
            preparer, record = self._preparer(), state["preparation"]
            parameters = Parameters(state["components"], state["prior"], state["noise"], state["posterior"])
            model.posterior.check(len(parameters.components))
            inside, outside = (1, parameters.components.shape[1]), (1, self.n_features_in_)
            row = preparer.apply(record, np.zeros(outside, dtype=parameters.components.dtype))
            if row.shape != inside or preparer.undo(record, row).shape != outside:
                raise ValueError(f"rows of {self.n_features_in_} features do not fit its components")
            self._online = online.restored(model, parameters, **(state["online"] or {"averages": None, "n_batches": 0}))
            self._set(self._attributes(model, parameters, record))
