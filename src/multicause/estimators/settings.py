"""Constructor arguments of causal models: what values they may have, and which parts they stand for."""

from __future__ import annotations

from inspect import signature
from numbers import Integral, Real
from typing import Any

from multicause import posteriors, priors
from multicause.annealing import Annealing
from multicause.combinations.base import Combination
from multicause.engines import Engine
from multicause.model import Model
from multicause.noises import NAMES as NOISES
from multicause.noises import Noise
from multicause.parts import resolve
from multicause.posteriors import Posterior, choose_posterior
from multicause.priors import Bernoulli, Prior
from multicause.runtime.scikit_learn import HasMethods, Interval, Options, StrOptions
from multicause.solvers.optimizers import SCHEDULES
from multicause.updates import NAMES as UPDATES
from multicause.updates import Update
from multicause.wiring import check, choose_update

#: Names that ``learn`` may contain, unless the prior has further parameters.
LEARNABLE = ("components", "activity", "noise")
COUNT = Interval(Integral, 1, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
SCHEDULE = StrOptions(set(SCHEDULES))

#: Constraints of constructor arguments, by name. A model that has other ones declares them as ``_constraints``.
CONSTRAINTS: dict[str, list[Any]] = {
    "n_components": [COUNT],
    "noise": [str, Noise],
    "combination": [Combination, None],
    "prior": [str, Prior, None],
    "posterior": [str, Posterior, None],
    "update": [str, Update, None],
    "annealing": [Options(str, {"auto"}), Annealing, None],
    "learn": [str, tuple, list],
    "activity": ["array-like", Interval(Real, 0, 1, closed="neither"), None],
    "noise_scale": [POSITIVE, None],
    "batch_size": [COUNT],
    "max_iter": [COUNT],
    "tol": [NOT_NEGATIVE],
    "repair": ["boolean", None],
    "n_init": [COUNT],
    "init": [str, "array-like", HasMethods("fit")],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "engine": [Engine, None],
}
#: Names of parts, by the constructor argument that they stand for.
NAMES: dict[str, Any] = {
    "noise": NOISES,
    "prior": priors.NAMES,
    "posterior": posteriors.NAMES,
    "update": UPDATES,
}


def constraints_of(estimator: type, own: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the constraints of the arguments that a class has: its own, or else those shared by their name."""
    names = [name for name in signature(estimator).parameters if name in own or name in CONSTRAINTS]
    return {name: own.get(name, CONSTRAINTS.get(name, [])) for name in names}


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
