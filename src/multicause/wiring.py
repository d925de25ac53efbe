"""Compatibility check of parts, suggestions of compatible ones, and the choice of a default update."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from inspect import signature
from itertools import combinations as subsets
from itertools import product
from math import inf
from typing import Any, NamedTuple

from multicause import combinations, noises, posteriors, priors, updates
from multicause.combinations import Combination
from multicause.compatibility import Capability, Expectation, IncompatiblePartsError, Rule
from multicause.model import Model
from multicause.noises import Noise
from multicause.parts import resolve
from multicause.posteriors import Posterior
from multicause.priors import Prior
from multicause.updates import NAMES, Update

ROLES = ("prior", "combination", "noise", "posterior", "update")
# Maximum number of pairs of parts that an error suggests if no single replacement is compatible.
MOST_PAIRS = 3


class Reason(NamedTuple):
    """A requirement of one part that another part does not meet."""

    role: str
    needs: str
    other: str = ""
    instead: str = ""  # what the other part offers or does instead

    def text(self, model: Model) -> str:
        """Return the reason as text, with the parts of a model."""
        needed = f"{self.role} {getattr(model, self.role)!r} needs {self.needs}"
        return f"{needed}, but {self.other} {getattr(model, self.other)!r} {self.instead}" if self.other else needed


# For each field of Requirements, the part that must meet it, and the attribute with what that part offers.
_OFFERED = {
    "supports": ("prior", "support"),
    "rules": ("combination", "rule"),
    "links": ("noise", "link"),
    "likelihoods": ("noise", "likelihood"),
    "spreads": ("noise", "spread"),
}


def unmet(model: Model, estimator: type | None = None) -> Iterator[Reason]:
    """Yield every reason why the parts of a model are not compatible; none if they are.

    ``estimator`` is the class that learns the model; without it, any estimator is assumed.
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
        absent = needs.expectations - model.posterior.offers
        if absent:
            wanted = _joined((each.value for each in Expectation if each in absent), "and")
            yield Reason(role, wanted, "posterior", "does not offer it")
        if needs.nonnegative and not model.combination.bounds[0] >= 0:
            yield Reason(role, "components that are not negative", "combination", "allows negative ones")
        if needs.unbounded and model.combination.bounded:
            yield Reason(role, "components of any value", "combination", "confines them")
        if needs.uncapped and model.combination.bounds[1] < inf:
            yield Reason(role, "components without an upper bound", "combination", "has one")
        if needs.selectable and not model.prior.selectable:
            yield Reason(role, "probabilities of states with few causes", "prior", "does not offer them")
        capabilities = frozenset() if estimator is None else needs.capabilities - offered_by(estimator)
        if estimator is not None and capabilities:
            wanted = _joined((each.value for each in Capability if each in capabilities), "and")
            yield Reason(role, f"{wanted}; {estimator.__name__} does not offer it")


def offered_by(estimator: type) -> frozenset[Capability]:
    """Return the capabilities that the declaration of an estimator offers."""
    return getattr(estimator, "_capabilities", frozenset())


def mean_range(model: Model) -> tuple[float, float]:
    """Return the smallest and largest mean that a combination can produce for the causes of a prior."""
    lower, upper = model.combination.bounds
    if not model.prior.is_zero_or_one:
        return -inf, (inf if model.combination.rule == Rule.SUM else upper)
    return lower, upper


def fits(model: Model, estimator: type | None = None) -> bool:
    """Return whether the parts of a model are compatible."""
    return next(unmet(model, estimator), None) is None


def check(model: Model, estimator: type | None = None, *, free: Iterable[str] = ()) -> Model:
    """Return the model if its parts are compatible; otherwise raise IncompatiblePartsError.

    The error lists all reasons and compatible alternatives. ``free`` are roles whose part the estimator has chosen to
    suit the others, and could choose differently.
    """
    free = set(free)
    reasons = list(unmet(model, estimator))
    if not reasons:
        return model
    blamed = [reason for reason in reasons if reason.role not in free] or reasons
    listed = "; ".join(f"({number}) {reason.text(model)}" for number, reason in enumerate(blamed, 1))
    where = "These parts" if estimator is None else f"These parts of {estimator.__name__}"
    raise IncompatiblePartsError(f"{where} do not fit together: {listed}. {_remedies(model, estimator, free)}")


def with_posterior(
    model: Model, posterior: str | Posterior, size: tuple[int, ...], estimator: type | None = None
) -> Model:
    """Return a model with another posterior, which is checked and bound to a size (H, D, N) of components and data."""
    n_components, n_features, n_rows = size
    chosen = resolve(posterior, posteriors.NAMES, "posterior", Posterior)
    chosen.check(n_components)
    model = replace(model, posterior=chosen)
    return check(replace(model, posterior=chosen.bind(model, n_components, n_features, n_rows)), estimator)


def _remedies(model: Model, estimator: type | None, free: set[str]) -> str:
    """Return a text with replacements that make the parts compatible: one part if possible, or else two."""
    known = known_parts()
    settable = ROLES if estimator is None else signature(estimator).parameters
    roles = [role for role in ROLES if role not in free and role in settable]
    single = {role: _serving(model, estimator, known, (role,), free) for role in roles}
    if any(single.values()):
        serving = "; ".join(
            f"{role}={_joined((repr(part) for (part,) in parts), 'or')}" for role, parts in single.items() if parts
        )
        return f"With the other parts as they are, use one of these: {serving}."
    several = [
        ", ".join(f"{role}={part!r}" for role, part in zip(both, parts, strict=True))
        for both in subsets(roles, 2)
        for parts in _serving(model, estimator, known, both, free)
    ]
    if several:
        return f"No other single part would serve, but two, for example {_joined(several[:MOST_PAIRS], 'or')}."
    return "No other one or two parts would serve; docs/developers/compatibility.md says what combines with what."


def _serving(
    model: Model, estimator: type | None, known: dict[str, list[Any]], roles: tuple[str, ...], free: set[str]
) -> list[tuple[Any, ...]]:
    """Return the known parts in some roles with which the model's parts would be compatible."""

    def is_another(role: str, part: Any) -> bool:
        own = getattr(model, role)
        # Only combinations may become compatible by other settings, and an estimator has one class of them.
        if role == "combination":
            return part != own and (estimator is None or type(part) is type(own))
        return type(part) is not type(own)

    choices = [[part for part in known[role] if is_another(role, part)] for role in roles]
    chosen = [{"update": update} for update in known["update"]] if "update" in free else [{}]
    alternatives = []
    for parts in product(*choices):
        other = replace(model, **dict(zip(roles, parts, strict=True)))
        if "combination" not in roles:
            other = replace(other, combination=other.combination.within(other.noise.means))
        if any(fits(replace(other, **update), estimator) for update in chosen):
            alternatives.append(parts)
    return alternatives


def known_parts() -> dict[str, list[Any]]:
    """Return every part of this library with its default settings, by role; combinations also with other bounds.

    These are the bounds that the means of some noise need.
    """

    def objects(module: Any, base: type) -> list[Any]:
        classes = [getattr(module, name) for name in module.__all__ if isinstance(getattr(module, name), type)]
        return [cls() for cls in classes if issubclass(cls, base) and not _is_abstract(cls)]

    known_noises = objects(noises, noises.Noise)
    # The widest range comes first.
    ranges = sorted({noise.means for noise in known_noises}, key=lambda means: (means[0], -means[1]))
    rules = objects(combinations, Combination)
    return {
        "prior": objects(priors, priors.Prior),
        "combination": list(dict.fromkeys(each for rule in rules for each in (rule, *map(rule.within, ranges)))),
        "noise": known_noises,
        "posterior": objects(posteriors, posteriors.Posterior),
        "update": objects(updates, updates.Update),
    }


def _is_abstract(part: type) -> bool:
    return any(getattr(getattr(part, name, None), "__isabstractmethod__", False) for name in dir(part))


def _joined(texts: Iterable[str], word: str) -> str:
    """Return "a", "a or b" or "a, b or c"."""
    texts = list(texts)
    return f" {word} ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def choose_update(
    prior: Prior, combination: Combination, noise: Noise, posterior: Posterior, update: str | Update | None = None
) -> Update:
    """Return the given update, or else the first in order of preference that is compatible with the other parts.

    If none is compatible, return the one with the fewest unmet requirements.
    """
    if update is not None:
        return resolve(update, NAMES, "update", Update)

    def reasons(candidate: Update) -> int:
        return len(list(unmet(Model(prior, combination, noise, posterior, candidate, frozenset()))))

    return min((cls() for cls in NAMES.values()), key=reasons)
