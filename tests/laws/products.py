"""All parts, and every product of them: those that fit, and those that are refused."""

from functools import cache
from itertools import product

from multicause import priors, updates
from multicause.combinations import Maximum, MaximumMagnitude, NoisyOr, Sum
from multicause.compatibility import Expectation
from multicause.model import Model
from multicause.noises import (
    Bernoulli,
    ClusterGaussian,
    DiagonalGaussian,
    Gaussian,
    LeakyBernoulli,
    LogisticBernoulli,
    Noiseless,
    Poisson,
)
from multicause.posteriors import (
    Beam,
    Evolved,
    Exact,
    Inverse,
    LinearGaussian,
    MostProbable,
    OneHot,
    Preselected,
    RecognitionNetwork,
    Truncated,
)
from multicause.updates.wake_sleep import WakeSleep
from multicause.wiring import fits

#: Numbers of causes, features and rows.
H, D, N = 3, 4, 6
LEARN = frozenset({"components", "activity", "noise"})
PARTS = {
    "prior": [
        priors.Bernoulli(),
        priors.Categorical(),
        priors.Gaussian(),
        priors.Laplace(),
        priors.Cauchy(),
        priors.HyperbolicSecant(),
        priors.SubGaussian(),
        priors.Layered(),
        priors.SpikeAndSlab(),
        priors.Ternary(),
        priors.Graded(),
    ],
    # Credit under the max rule is the derivative of the mean only without smoothing.
    "combination": [
        Sum(),
        Sum(nonnegative=True),
        Sum(nonnegative=True, upper=1.0),
        Maximum(least_temperature=1.0),
        Maximum(least_temperature=1.0, upper=1.0),
        MaximumMagnitude(least_temperature=1.0),
        NoisyOr(),
    ],
    "noise": [
        Gaussian(),
        DiagonalGaussian(),
        ClusterGaussian(),
        Poisson(),
        Bernoulli(),
        LeakyBernoulli(),
        LogisticBernoulli(),
        Noiseless(),
    ],
    "posterior": [
        Beam(max_active=3, width=3),
        Exact(),
        Evolved(27),
        Truncated(3),
        Preselected(3, 3, keep=None),
        OneHot(),
        LinearGaussian(),
        MostProbable(tol=1e-6),
        Inverse(),
        RecognitionNetwork(),
    ],
    "update": [
        updates.LeastSquares(),
        updates.Coordinates(),
        updates.Multiplicative(),
        updates.MultiplicativeCounts(),
        updates.CreditMean(),
        updates.NormalizedMean(),
        updates.Gradient(),
        updates.WeightedMean(),
        updates.DeltaRule(exponent=0.0),
        updates.NaturalGradient(rate=0.01),
        updates.ActivationShares(),
        WakeSleep(),
    ],
}


@cache
def all_models():
    """Every product of parts: those that fit, and all others."""
    fitting, refused = [], []
    for parts in product(*PARTS.values()):
        model = Model(*parts, LEARN)
        (fitting if fits(model) else refused).append(model)
    return fitting, refused


def without_update(models):
    """The models of a list that differ in more than their updates, with all updates of each."""
    grouped = {}
    for model in models:
        parts = (model.prior, model.combination, model.noise, model.posterior)
        grouped.setdefault(parts, []).append(model)
    return list(grouped.values())


# Wake and sleep are learned by another loop than EM; tests/models/test_helmholtz_machine.py has their enumeration.
GROUPS = [group for group in without_update(all_models()[0]) if Expectation.NETWORK not in group[0].posterior.offers]
