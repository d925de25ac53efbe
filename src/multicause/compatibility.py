"""The words in which parts declare what they offer and what they need of each other.

Each part offers values of these enumerations as class attributes, and says as ``requires`` what the others must offer.
:mod:`multicause.wiring` compares both where a model is made of its parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any


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
    NOISY_OR = "a noisy-or of causes"
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
    LEAKY = "the variance of binary data that may be on without a cause"
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
