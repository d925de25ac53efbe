"""Constructor arguments of models: what values they may have, and which parts they stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from inspect import Parameter, formatannotation, signature
from numbers import Integral, Real
from typing import Any

from multicause import posteriors, priors
from multicause.annealing import Annealing
from multicause.combinations.base import Combination
from multicause.engines import Engine
from multicause.model import Model
from multicause.noises import NAMES as NOISES
from multicause.noises import Noise
from multicause.parts import NestedParts, PartChoice, resolve
from multicause.posteriors import Posterior, choose_posterior
from multicause.priors import Bernoulli, Prior
from multicause.runtime.scikit_learn import HasMethods, Interval, Options, StrOptions
from multicause.solvers.optimizers import NAMES as OPTIMIZERS
from multicause.solvers.optimizers import SCHEDULES, Optimizer
from multicause.updates import NAMES as UPDATES
from multicause.updates import Update
from multicause.wiring import check, choose_update

#: Names that ``learn`` may contain, unless the prior has further parameters.
LEARNABLE = ("components", "activity", "noise")
COUNT = Interval(Integral, 1, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
SCHEDULE = StrOptions(set(SCHEDULES))


class Named(Options):
    """Constraint of an argument that may be the name of a part; ``resolve`` reports names that are not known."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        super().__init__(str, set(names))
        self.names = names

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether the value is a string."""
        return isinstance(val, str)


#: Constraints of constructor arguments, by name. A model that has other ones declares them as ``_constraints``.
CONSTRAINTS: dict[str, list[Any]] = {
    "n_components": [COUNT],
    "noise": [Named(NOISES), Noise],
    "combination": [Combination, None],
    "prior": [Named(priors.NAMES), Prior, None],
    "posterior": [Named(posteriors.NAMES), Posterior, None],
    "update": [Named(UPDATES), Update, None],
    "optimizer": [Named(OPTIMIZERS), Optimizer],
    "annealing": [Options(str, {"auto"}), Annealing, None],
    "learn": [str, tuple, list],
    "activity": ["array-like", Interval(Real, 0, 1, closed="neither"), None],
    "noise_scale": [POSITIVE, None],
    "batch_size": [COUNT],
    "n_steps": [COUNT],
    "learning_rate": [POSITIVE],
    "final_learning_rate": [POSITIVE],
    "momentum": [Interval(Real, 0, 1, closed="left")],
    "weight_decay": [NOT_NEGATIVE],
    "schedule": [SCHEDULE],
    "max_iter": [COUNT],
    "tol": [NOT_NEGATIVE],
    "repair": ["boolean", None],
    "n_init": [COUNT],
    "init": [str, "array-like", HasMethods("fit")],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "engine": [Engine, None],
}
#: Constraints of other arguments, by the first word of their annotation.
CONSTRAINTS_BY_TYPE: dict[str, list[Any]] = {"bool": ["boolean"], "tuple": [tuple, list]}


class ConstrainedSettings(NestedParts):
    """Base class of estimators whose constraints of constructor arguments follow from the signature.

    The name of an argument determines its constraints, or else its type. None is allowed where it is the default or
    part of the annotation, and names of parts where the annotation contains ``str``.
    """

    #: Constraints of constructor arguments that do not follow from the signature.
    _constraints: dict[str, list[Any]] = {}
    _parameter_constraints: dict[str, list[Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_parameter_constraints" not in vars(cls):
            own: dict[str, list[Any]] = {}
            for base in reversed(cls.__mro__):
                own |= vars(base).get("_constraints", {})
            found = {name: _constraints_of(argument, own) for name, argument in signature(cls).parameters.items()}
            cls._parameter_constraints = {name: constraints for name, constraints in found.items() if constraints}

    def _part_choices(self) -> dict[str, PartChoice]:
        """Return the parts that names stand for."""
        named = {name: [c for c in of if isinstance(c, Named)] for name, of in self._parameter_constraints.items()}
        return {name: PartChoice(found[0].names) for name, found in named.items() if found}


def _constraints_of(argument: Parameter, own: dict[str, list[Any]]) -> list[Any]:
    # Only the text of an annotation is read: it may have names that are not imported at run time.
    annotated = argument.annotation is not Parameter.empty
    words = re.findall(r"\w+", formatannotation(argument.annotation)) if annotated else []
    by_type = CONSTRAINTS_BY_TYPE.get(words[0], []) if annotated else []
    constraints = list(own.get(argument.name, CONSTRAINTS.get(argument.name, by_type)))
    if annotated and "str" not in words:
        constraints = [each for each in constraints if not isinstance(each, Named)]
    optional = argument.default is None or not {"None", "NoneType", "Optional"}.isdisjoint(words)
    has_none = None in constraints or "random_state" in constraints
    return [*constraints, None] if constraints and optional and not has_none else constraints


def product(
    estimator: Any,
    combination: Combination,
    *,
    prior: Prior | None = None,
    posterior: Posterior | None = None,
    learnable: tuple[str, ...] = LEARNABLE,
) -> Model:
    """Return the model of the parts that the constructor arguments of an estimator stand for.

    ``combination``, ``prior`` and ``posterior`` are the defaults; a combination that the user gives must have the class
    of the default one. The update follows from the other parts.
    """
    settings = estimator.get_params(deep=False)
    check_learn(settings["learn"], learnable)
    noise = resolve(settings["noise"], NOISES, "noise", Noise)
    given = settings.get("combination")
    rule = resolve(combination.within(noise.means) if given is None else given, {}, "combination", type(combination))
    if settings.get("prior") is not None:
        prior = resolve(settings["prior"], priors.NAMES, "prior", Prior)
    if settings.get("posterior") is not None:
        posterior = resolve(settings["posterior"], posteriors.NAMES, "posterior", Posterior)
    others = (Bernoulli() if prior is None else prior, rule, noise)
    states = choose_posterior(estimator.n_components, len(others[0].strengths)) if posterior is None else posterior
    update = choose_update(*others, states, settings.get("update"))
    model = Model(*others, states, update, learn=frozenset(settings["learn"]))
    return check(model, type(estimator), free=() if settings.get("update") is not None else ("update",))


def check_learn(learn: Any, learnable: tuple[str, ...]) -> None:
    """Raise ValueError if ``learn`` is not a tuple of known names."""
    if isinstance(learn, str) or any(name not in learnable for name in learn):
        raise ValueError(
            f"learn must be a tuple of names from {learnable}; got {learn!r}. "
            "A tuple of one name is written ('components',)."
        )
