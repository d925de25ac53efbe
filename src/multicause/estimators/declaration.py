"""Declaration of a causal model: its parts, the preparation of its rows, and its solver.

A named model implements ``_parts`` and, where the defaults do not suit it, these functions of its settings:

- ``_preparer``: preparation of rows (none, centred, whitened, condensed to moments)
- ``_solver``: learning algorithm
- ``_starts``: initial parameters
- ``_derived``: fitted attributes that follow from parameters
- ``value_labels``: descriptions of bounds and scores

None of them changes the estimator. Two class attributes say which constructor arguments have other constraints than
those that follow from the signature (``_constraints``), and what parts may need beyond EM on rows as they are
(``_capabilities``). Besides, a model may define a public method in its own way, as K-means does ``inverse_transform``.
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

    #: What the preparation, solver and starts of this model offer to parts that need more than EM on rows as they are.
    _capabilities: frozenset[Capability] = frozenset()

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
        """Return initial parameters, with a leading axis of starts: by default components as ``init`` says.

        Raises ValueError if the settings do not suit the data.
        """
        settings = self.get_params(deep=False)
        return self._starts_from(settings.get("init", "random"), initial)

    # ------------------------------------------------------------------- what follows from the declaration

    def _wire(self, data: Data) -> Model:
        """Return the model of this fit, with parts that are checked for compatibility and bound to the data's size."""
        model = replace(self._compatible_parts(), missing=data.has_missing)
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

        choices, roles = super()._part_choices(), [role for role in ROLES if role in self.get_params(deep=False)]
        named = {role: choices.get(role, PartChoice()).names for role in roles}
        return {**choices, **{role: PartChoice(names, partial(defaults, role)) for role, names in named.items()}}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            noise = self._parts().noise
        except (ValueError, TypeError, IncompatiblePartsError):
            return tags  # ``fit`` reports settings that are not valid
        tags.input_tags.positive_only = noise.link is Link.LOGIT or noise.means[0] >= 0
        return tags
