"""Which parts fit together: what each part offers and needs, as data, and the one function that compares it.

What a part offers are attributes of its class: ``support`` of a prior; ``rule`` and ``bounds`` of a combination;
``link``, ``likelihood``, ``spread`` and ``means`` of a noise; ``offers`` of a posterior. What a part needs of the
others is its ``requires``, a :class:`Requirements`. :func:`check` is called where an estimator wires its parts, and
raises one error that lists everything that is unmet and what would serve.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations, product
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from multicause.model import Model

#: The parts of a model, in the order in which errors name them.
ROLES = ("prior", "combination", "noise", "posterior", "update")
# Suggestions that an error lists for each part, and pairs of parts where no single one serves.
MOST_PAIRS = 3


class Support(Enum):
    """Which values the causes of a prior have."""

    BINARY = "causes that are independently on or off"
    ONE_HOT = "exactly one active cause"
    GAUSSIAN = "normally distributed causes"
    REAL = "real causes with a density that is not normal"
    LAYERED = "binary causes that have causes themselves"
    SPIKE_SLAB = "causes that are on or off and have a strength"


class Rule(Enum):
    """How active causes make a mean."""

    SUM = "a sum of causes"
    CLIPPED_SUM = "a sum of causes that is cut off"
    MAXIMUM = "a maximum of causes"
    OTHER = "another rule"


class Link(Enum):
    """What the number is that a combination makes, for the noise."""

    MEAN = "the mean of the data as parameter"
    LOGIT = "log odds as parameter"


class Likelihood(Enum):
    """Of what a noise has a likelihood."""

    OF_MEANS = "a likelihood of every mean"
    OF_CAUSES = "a likelihood that depends on which cause is active"
    NONE = "no finite likelihood, because data are equal to their means"


class Spread(Enum):
    """How the variance of a noise depends on the mean."""

    CONSTANT = "a variance that does not depend on the mean"
    MEAN = "a variance that is the mean"
    OTHER = "a variance that depends on the mean in another way"


class Expectation(Enum):
    """What a posterior can be asked for, beyond bounds and mean causes: attributes of ``Inference``."""

    MOMENTS = "first and second moments of the causes"  # cause_data, cause_pairs
    CREDIT = "sums over states by credit"  # pull
    LIKELIHOOD = "the expected log-likelihood"  # total_log_likelihood
    RESIDUALS = "squared residuals of each dimension"  # residuals
    RESPONSIBILITIES = "responsibilities of single causes"  # weighted
    EFFECTS = "effects of real causes on the likelihood"  # total_effects
    SLOPES = "slopes of the log prior"  # slope_causes, curvature_squares
    NETWORK = "a recognition network"  # weights that wake-sleep learns


@dataclass(frozen=True)
class Requirements:
    """What a part needs of the other parts of a model. Sets list what may be there; None allows everything."""

    supports: frozenset[Support] | None = None
    rules: frozenset[Rule] | None = None
    links: frozenset[Link] | None = None
    likelihoods: frozenset[Likelihood] | None = None
    spreads: frozenset[Spread] | None = None
    #: What the posterior must offer, all of it.
    expectations: frozenset[Expectation] = frozenset()
    #: Whether components must be confined to values of at least zero.
    nonnegative: bool = False
    #: Whether components must not be confined at all, or not from above.
    unbounded: bool = False
    uncapped: bool = False
    #: Whether the prior must give probabilities of states of a few candidates.
    selectable: bool = False
    #: The only estimator, or base of estimators, that can learn with this part.
    estimator: str | None = None

    def also(self, **changes: Any) -> Requirements:
        """Return these requirements with others in place of some of them."""
        return replace(self, **changes)


class IncompatiblePartsError(ValueError):
    """Parts that cannot serve together, with all reasons and what would serve."""


class Reason(NamedTuple):
    """One thing that a part needs and another part lacks."""

    role: str
    needs: str
    other: str = ""
    instead: str = ""  # what the other part has or does

    def text(self, model: Model) -> str:
        """Return the reason in words, with the parts of a model."""
        own = f"{self.role} {getattr(model, self.role)!r} needs {self.needs}"
        return f"{own}, but {self.other} {getattr(model, self.other)!r} {self.instead}" if self.other else own


# By the field of Requirements: the part that must offer it, and the attribute with what it offers.
_OFFERED = {
    "supports": ("prior", "support"),
    "rules": ("combination", "rule"),
    "links": ("noise", "link"),
    "likelihoods": ("noise", "likelihood"),
    "spreads": ("noise", "spread"),
}


def unmet(model: Model, estimator: type | None = None) -> Iterator[Reason]:
    """Yield every reason why the parts of a model cannot serve together; none if they can.

    ``estimator`` is the class that learns the model; without it, any may.
    """
    lower, upper = mean_range(model)
    least, most = model.noise.means
    if lower < least or upper > most:
        needs = f"means between {least:g} and {most:g}"
        yield Reason("noise", needs, "combination", f"makes means between {lower:g} and {upper:g} of such causes")
    for role in ROLES:
        needs = getattr(model, role).requires
        for field, (other, attribute) in _OFFERED.items():
            allowed, offered = getattr(needs, field), getattr(getattr(model, other), attribute)
            if allowed is not None and offered not in allowed:
                wanted = _joined((each.value for each in type(offered) if each in allowed), "or")
                yield Reason(role, wanted, other, f"has {offered.value}")
        lacking = needs.expectations - model.posterior.offers
        if lacking:
            wanted = _joined((each.value for each in Expectation if each in lacking), "and")
            yield Reason(role, wanted, "posterior", "does not offer it")
        if needs.nonnegative and not model.combination.bounds[0] >= 0:
            yield Reason(role, "components that are not negative", "combination", "allows negative ones")
        if needs.unbounded and model.combination.bounded:
            yield Reason(role, "components of any value", "combination", "confines them")
        if needs.uncapped and model.combination.bounds[1] < inf:
            yield Reason(role, "components without an upper bound", "combination", "has one")
        if needs.selectable and not model.prior.selectable:
            yield Reason(role, "probabilities of states with few causes", "prior", "does not offer them")
        names = () if estimator is None else tuple(base.__name__ for base in estimator.__mro__)
        if needs.estimator is not None and names and needs.estimator not in names:
            yield Reason(role, f"the estimator {needs.estimator} in place of {names[0]}")


def mean_range(model: Model) -> tuple[float, float]:
    """Return the smallest and largest mean that a combination can make of the causes of a prior."""
    lower, upper = model.combination.bounds
    if model.prior.support in (Support.REAL, Support.GAUSSIAN, Support.SPIKE_SLAB):
        return -inf, (inf if model.combination.rule == Rule.SUM else upper)
    return lower, upper


def fits(model: Model, estimator: type | None = None) -> bool:
    """Return whether the parts of a model can serve together."""
    return next(unmet(model, estimator), None) is None


def check(model: Model, estimator: type | None = None, *, free: Iterable[str] = ()) -> Model:
    """Return a model whose parts fit together; otherwise raise an error with all reasons and with what would serve.

    ``free`` are roles whose part the estimator has chosen to suit the others, so that it would choose anew.
    """
    free = set(free)
    reasons = list(unmet(model, estimator))
    if not reasons:
        return model
    own = [reason for reason in reasons if reason.role not in free] or reasons
    listed = "; ".join(f"({number}) {reason.text(model)}" for number, reason in enumerate(own, 1))
    where = "These parts" if estimator is None else f"These parts of {estimator.__name__}"
    raise IncompatiblePartsError(f"{where} do not fit together: {listed}. {_remedies(model, estimator, free)}")


def _remedies(model: Model, estimator: type | None, free: set[str]) -> str:
    """Return which other parts would make a model whole: one part if possible, or else two."""
    known = known_parts()
    roles = [role for role in ROLES if role not in free]
    single = {role: _serving(model, estimator, known, (role,), free) for role in roles}
    if any(single.values()):
        serving = "; ".join(
            f"{role}={_joined((repr(part) for (part,) in parts), 'or')}" for role, parts in single.items() if parts
        )
        return f"With the other parts as they are, these serve: {serving}."
    several = [
        ", ".join(f"{role}={part!r}" for role, part in zip(both, parts, strict=True))
        for both in combinations(roles, 2)
        for parts in _serving(model, estimator, known, both, free)
    ]
    if several:
        return f"No other single part would serve, but two, for example {_joined(several[:MOST_PAIRS], 'or')}."
    return "No other one or two parts would serve; docs/developers/compatibility.md says what combines with what."


def _serving(
    model: Model, estimator: type | None, known: dict[str, list[Any]], roles: tuple[str, ...], free: set[str]
) -> list[tuple[Any, ...]]:
    """Return the known parts in some roles with which the model would be whole."""

    def is_another(role: str, part: Any) -> bool:
        own = getattr(model, role)
        # Other settings help combinations alone, and an estimator has one kind of them.
        if role == "combination":
            return part != own and (estimator is None or type(part) is type(own))
        return type(part) is not type(own)

    choices = [[part for part in known[role] if is_another(role, part)] for role in roles]
    chosen = [{"update": update} for update in known["update"]] if "update" in free else [{}]
    found = []
    for parts in product(*choices):
        other = replace(model, **dict(zip(roles, parts, strict=True)))
        if "combination" not in roles:
            other = replace(other, combination=other.combination.within(other.noise.means))
        if any(fits(replace(other, **update), estimator) for update in chosen):
            found.append(parts)
    return found


def known_parts() -> dict[str, list[Any]]:
    """Return one object of every part of this library with its default settings, by roles."""
    from multicause import noises, posteriors, priors
    from multicause.combinations import Maximum, Sum
    from multicause.learning import updates
    from multicause.learning.updates.wake_sleep import WakeSleep

    def objects(module: Any, base: type) -> list[Any]:
        classes = [getattr(module, name) for name in module.__all__ if isinstance(getattr(module, name), type)]
        return [cls() for cls in classes if issubclass(cls, base) and not _is_abstract(cls)]

    return {
        "prior": objects(priors, priors.Prior),
        "combination": [
            Sum(),
            Sum(nonnegative=True),
            Sum(nonnegative=True, upper=1.0),
            Maximum(),
            Maximum(upper=1.0),
        ],
        "noise": objects(noises, noises.Noise),
        "posterior": objects(posteriors, posteriors.Posterior),
        "update": [*objects(updates, updates.Update), WakeSleep()],
    }


def _is_abstract(part: type) -> bool:
    return any(getattr(getattr(part, name, None), "__isabstractmethod__", False) for name in dir(part))


def _joined(texts: Iterable[str], word: str) -> str:
    """Return "a", "a or b" or "a, b or c"."""
    texts = list(texts)
    return f" {word} ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))
