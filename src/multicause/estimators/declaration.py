"""Declaration of a causal model: its parts, the preparation of its rows, and its solver.

A named model implements ``_parts`` and, where the defaults do not suit it, these functions of its settings:

- ``_preparer``: preparation of rows (none, centred, whitened, condensed to moments)
- ``_solver``: learning algorithm
- ``_starts``: initial parameters
- ``_check_data``: settings that depend on the size of the data
- ``_derived``: fitted attributes that follow from parameters
- ``_recognition_model``: another posterior for recognition than for learning
- ``value_labels``: descriptions of bounds and scores

None of them changes the estimator.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from multicause.compatibility import Capability, IncompatiblePartsError, Link
from multicause.em.solver import Solver
from multicause.engines import Data
from multicause.estimators.fitted_causes import FittedCauses
from multicause.estimators.settings import NAMES, constraints_of
from multicause.initialization.conditions import InitialConditions
from multicause.initialization.parameters import starting_parameters
from multicause.model import Model, interned
from multicause.parts import PartChoice
from multicause.posteriors import default_posteriors
from multicause.records import Parameters
from multicause.search.em import EM
from multicause.wiring import ROLES, check


class DeclaredModel(FittedCauses):
    """Base class of models that are declared by their parts."""

    #: Constraints of constructor arguments that differ from those of other models (see ``estimators/settings.py``).
    _constraints: dict[str, list[Any]] = {}
    #: What the preparation, solver and starts of this model offer to parts that need more than EM on rows as they are.
    _capabilities: frozenset[Capability] = frozenset()
    #: Names of parts, by constructor argument.
    _part_names: dict[str, Any] = NAMES

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_parameter_constraints" not in cls.__dict__:
            constraints = [base.__dict__.get("_constraints", {}) for base in reversed(cls.__mro__)]
            cls._parameter_constraints = constraints_of(
                cls, {name: c for of_class in constraints for name, c in of_class.items()}
            )

    @abstractmethod
    def _parts(self) -> Model:
        """Return the product of parts that this model is, from the constructor arguments and their defaults."""

    def _solver(self) -> Solver:
        """Return the solver; by default EM, with the settings that the constructor has."""
        settings = self.get_params(deep=False)
        return EM(
            max_iter=settings["max_iter"],
            tol=settings["tol"],
            n_starts=settings.get("n_init", 1),
            annealing=settings.get("annealing"),
            repair=settings.get("repair", False),
            annealed=isinstance(settings["init"], str),
        )

    def _starts(self, initial: InitialConditions) -> Parameters:
        """Return initial parameters, with a leading axis of starts: by default components as ``init`` says."""
        settings = self.get_params(deep=False)
        return self._starts_from(settings.get("init", "random"), initial)

    def _check_data(self, data: Data) -> None:
        """Raise ValueError if the settings do not suit the data."""

    # ------------------------------------------------------------------- what follows from the declaration

    def _wire(self, data: Data) -> Model:
        """Return the model of this fit, with parts that are checked for compatibility and bound to the data's size."""
        model = replace(self._compatible_parts(), missing=data.has_missing)
        self._check_data(data)
        n_components = self._n_causes(data)
        model.posterior.check(n_components)
        posterior = model.posterior.bind(model, n_components, data.n_features, data.n_rows)
        return interned(replace(model, posterior=posterior))

    def _compatible_parts(self) -> Model:
        """Return the parts, whose settings and compatibility are checked."""
        model = self._parts()
        for role in ROLES:
            getattr(model, role).validate()
        check(model, type(self))
        return model

    def check_settings(self) -> None:
        """Raise an error for constructor arguments, or parts made of them, that no data would suit."""
        super().check_settings()
        self._compatible_parts()

    def _starts_from(self, init: str | ArrayLike, initial: InitialConditions) -> Parameters:
        """Return default starts: components by ``init``, other parameters by the parts and constructor arguments."""
        settings = self.get_params(deep=False)
        others = {name: settings.get(name) for name in ("activity", "noise_scale")}
        return starting_parameters(initial, self._n_causes(initial.data), init=init, **others)

    def _n_causes(self, data: Data) -> int:
        """Return the number of causes, by default that of the dimensions that the model learns from."""
        return data.n_features if self.n_components is None else self.n_components

    def _needs_complete(self) -> str:
        """Return why no value may be missing; empty if values may be missing."""
        return self._preparer().needs_complete or self._solver().needs_complete

    def _part_choices(self) -> dict[str, PartChoice]:
        """Return the parts that names and None stand for."""

        def defaults(role: str) -> tuple[Any, ...]:
            default = getattr(self._parts(), role)
            several = default_posteriors(self.n_components) if role == "posterior" else ()
            return several if default in several else (default,)

        roles = [role for role in ROLES if role in self.get_params(deep=False)]
        of_roles = {role: PartChoice(self._part_names.get(role, {}), partial(defaults, role)) for role in roles}
        others = {name: PartChoice(names) for name, names in self._part_names.items() if name not in ROLES}
        return {**super()._part_choices(), **of_roles, **others}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            noise = self._parts().noise
        except (ValueError, TypeError, IncompatiblePartsError):
            return tags  # ``fit`` reports settings that are not valid
        tags.input_tags.positive_only = noise.link is Link.LOGIT or noise.means[0] >= 0
        return tags
