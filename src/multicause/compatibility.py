"""Properties and requirements by which parts declare what they offer and what they need from each other.

Each part has values of these enumerations as class attributes, and declares in ``requires`` what the others must offer.
:mod:`multicause.wiring` compares both when a model is made of its parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any


class Support(Enum):
    """Set of values that the causes of a prior can have."""

    BINARY = "causes that are independently on or off"
    ONE_HOT = "exactly one active cause"
    GAUSSIAN = "normally distributed causes"
    REAL = "real causes with a density that is not normal"
    LAYERED = "binary causes that have causes themselves"
    LEVELS = "causes with a few levels"
    NORMAL_SLABS = "causes that are on or off and have a normal strength"


class Rule(Enum):
    """Kind of rule by which active causes determine a mean."""

    SUM = "a sum of causes"
    CLIPPED_SUM = "a sum of causes that is cut off"
    MAXIMUM = "a maximum of causes"
    MAXIMUM_MAGNITUDE = "a maximum of magnitudes of causes"
    NOISY_OR = "a noisy-or of causes"
    OTHER = "another rule"


class Link(Enum):
    """Meaning of the number that a combination computes, for the noise."""

    MEAN = "the mean of the data as parameter"
    LOGIT = "log odds as parameter"


class Likelihood(Enum):
    """Arguments of which the likelihood of a noise is a function."""

    OF_MEANS = "a likelihood of every mean"
    OF_CAUSES = "a likelihood that depends on which cause is active"
    NONE = "no finite likelihood, because data are equal to their means"


class Spread(Enum):
    """Dependence of the variance of a noise on the mean."""

    CONSTANT = "a variance that does not depend on the mean"
    MEAN = "a variance that is the mean"
    LEAKY = "the variance of binary data that may be on without a cause"
    OTHER = "a variance that depends on the mean in another way"


class Expectation(Enum):
    """Expectations that some posteriors offer, in addition to bounds and mean causes: attributes of ``Inference``."""

    MOMENTS = "first and second moments of the causes"  # cause_data, cause_pairs
    CREDIT = "sums over states by credit"  # pull
    LIKELIHOOD = "the expected log-likelihood"  # total_log_likelihood
    RESIDUALS = "squared residuals of each dimension"  # residuals
    RESPONSIBILITIES = "responsibilities of single causes"  # weighted
    EFFECTS = "effects of real causes on the likelihood"  # total_effects
    SLOPES = "slopes of the log prior"  # slope_causes, curvature_squares
    LEVELS = "expected numbers of rows with each level of a cause"  # level_counts
    NETWORK = "a recognition network"  # weights that wake-sleep learns


class Capability(Enum):
    """What the declaration of an estimator may offer to parts, in addition to EM on rows as they are."""

    WHITENED = "whitened data, as IndependentComponents has"
    WAKE_SLEEP = "wake-sleep learning, as HelmholtzMachine has"
    SLABS = "initial strengths of causes that suit the data, as SpikeAndSlabCauses has"


@dataclass(frozen=True)
class Requirements:
    """Requirements of a part on the other parts of a model, and on its estimator.

    Sets list the allowed values; None allows all.
    """

    supports: frozenset[Support] | None = None
    rules: frozenset[Rule] | None = None
    links: frozenset[Link] | None = None
    likelihoods: frozenset[Likelihood] | None = None
    spreads: frozenset[Spread] | None = None
    #: Expectations all of which the posterior must offer.
    expectations: frozenset[Expectation] = frozenset()
    #: Whether components must be non-negative.
    nonnegative: bool = False
    #: Whether components must have no bounds at all (``unbounded``), or no upper bound (``uncapped``).
    unbounded: bool = False
    uncapped: bool = False
    #: Whether the prior must offer probabilities of states of a few candidates.
    selectable: bool = False
    #: Capabilities all of which the estimator must offer.
    capabilities: frozenset[Capability] = frozenset()

    def also(self, **changes: Any) -> Requirements:
        """Return these requirements with some of them replaced."""
        return replace(self, **changes)


class IncompatiblePartsError(ValueError):
    """Error raised for parts that are not compatible, with all reasons and compatible alternatives."""
