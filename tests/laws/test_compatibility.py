"""The law of the whole product: parts together either learn what an oracle says, or are refused when they are wired.

Every prior × combination × noise × posterior × update that fits is evaluated on six rows and three causes: its bound
and all its sums agree with enumeration or closed forms, its step leads uphill by finite differences, and what it
declares to be monotone is. All programs run without compilation, which would take minutes.
"""

import re
from functools import cache
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multicause import HelmholtzMachine, LinearCauses, MaximalCauses, NonnegativeCauses, priors, updates
from multicause.arrays import double_precision
from multicause.combinations import Maximum, MaximumMagnitude, NoisyOr, Sum
from multicause.compatibility import Expectation, IncompatiblePartsError
from multicause.em.e_step import statistics_of
from multicause.em.m_step import maximize_one
from multicause.em.step import is_monotone
from multicause.engines import Local
from multicause.model import Block, Model, Parameters
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
from multicause.wiring import ROLES, check, fits, known_parts, unmet
from tests.oracles import parts as oracle

H, D, N = 3, 4, 6
LEARN = frozenset({"components", "activity", "noise"})
TEMPERATURE = 1.25
STEP = 1e-6

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


def name_of(group):
    return "-".join(str(getattr(group[0], role)).replace("least_temperature=1.0", "") for role in ROLES[:-1])


# Wake and sleep are learned by another loop than EM; tests/models/test_helmholtz_machine.py has their enumeration.
GROUPS = [group for group in without_update(all_models()[0]) if Expectation.NETWORK not in group[0].posterior.offers]


def test_the_law_covers_every_part():
    for role, known in known_parts().items():
        assert {type(part) for part in known} == {type(part) for part in PARTS[role]}, role


def test_counts():
    fitting, refused = all_models()
    assert (len(fitting), len(refused)) == (392, 73528)
    # All but the one of a recognition network, with all updates that serve each.
    assert sum(len(group) for group in GROUPS) == 391


def test_the_table_of_the_documentation_is_true():
    """All parts of a line combine with each other, and nothing else does."""
    text = (Path(__file__).parents[2] / "docs/developers/compatibility.md").read_text(encoding="utf-8")
    table = text.split("<!-- table of what combines -->")[1].split("<!-- end of table -->")[0]
    lines = [line.strip("| ").split(" | ") for line in table.strip().splitlines()[2:]]
    told = {parts for line in lines for parts in product(*(re.findall("`([^`]*)`", cell) for cell in line))}

    def names(parts):
        return tuple(repr(part) if role == "combination" else type(part).__name__ for role, part in parts.items())

    known = [dict(zip(ROLES, parts, strict=True)) for parts in product(*known_parts().values())]
    assert told == {names(parts) for parts in known if fits(Model(**parts, learn=LEARN))}


def test_every_refusal_has_reasons_and_one_error():
    """All refused products have reasons in words; the error is raised for some of them, as it takes longer."""
    refused = all_models()[1]
    for model in refused[::50]:
        reasons = [reason.text(model) for reason in unmet(model)]
        assert reasons
        assert all(" needs " in reason for reason in reasons)
    for model in refused[::3000]:
        reasons = [reason.text(model) for reason in unmet(model)]
        with pytest.raises(IncompatiblePartsError, match="These parts do not fit together") as caught:
            check(model)
        assert all(reason in str(caught.value) for reason in reasons)


@pytest.mark.parametrize(("kind", "n_wired"), [(LinearCauses, 18), (NonnegativeCauses, 19), (MaximalCauses, 15)])
def test_estimators_wire_what_fits_and_refuse_the_rest(kind, n_wired):
    """One part of a model at a time is replaced by every other part: it is wired, or refused by that one error."""
    wired = 0
    for role, parts in known_parts().items():
        for part in parts:
            if role == "combination" and not isinstance(part, Maximum if kind is MaximalCauses else Sum):
                continue
            if role == "combination" and kind is NonnegativeCauses and part == Sum():
                continue
            model, error = wire(kind(H, **{role: part}))
            if model is None:
                assert f"These parts of {kind.__name__} do not fit together: (1) " in error
                assert "use one of these: " in error or " would serve" in error
            else:
                assert fits(model, kind)
                wired += 1
    assert wired == n_wired


def wire(estimator):
    """The model of an estimator and no error, or none and the error."""
    try:
        return estimator._wire(Local().load(np.eye(D), np.ones(D))), ""
    except IncompatiblePartsError as error:
        return None, str(error)


def test_a_subclass_may_wire_what_its_base_may():
    class Machine(HelmholtzMachine):
        pass

    assert fits(wire(Machine(2))[0], Machine)
    with pytest.raises(IncompatiblePartsError, match="needs wake-sleep learning, .*; LinearCauses does not"):
        LinearCauses(2, prior=priors.Layered()).fit(np.eye(4))


# ------------------------------------------------------------------------------------------- data and parameters


def rows_for(noise, n_features):
    random = np.random.RandomState(1)
    if isinstance(noise, Poisson):
        return random.poisson(2.0, (N, n_features)).astype(float)
    if isinstance(noise, Bernoulli | LeakyBernoulli | LogisticBernoulli):
        return (random.uniform(size=(N, n_features)) < 0.5).astype(float)
    return random.normal(0.6, 0.7, (N, n_features))


def parameters_for(model, n_features):
    random = np.random.RandomState(2)
    upper = min(model.combination.bounds[1], 2.0)
    W = random.permutation(np.linspace(0.15, 0.95, H * n_features)).reshape(H, n_features) * upper
    if not model.combination.bounded:
        W[0] *= -1
    prior = {"activity": np.array([0.2, 0.5, 0.3])}
    if isinstance(model.prior, priors.SpikeAndSlab):
        prior |= {"slab_mean": np.array([0.4, 0.0, -1.0]), "slab_variance": np.array([0.5, 2.0, 1.0])}
    if isinstance(model.prior, priors.Graded):
        prior = {"level_probabilities": np.array([[0.2, 0.5, 0.3], [0.1, 0.3, 0.6], [0.4, 0.4, 0.2]])}
    if isinstance(model.prior, priors.Continuous):
        prior = {"scale": np.array([1.0, 1.3, 0.8])}
    origin = {"origin": np.linspace(0.3, 0.8, n_features)}
    noise = {
        Gaussian: {"variance": np.array(0.3), "floor": np.array(1e-9), **origin},
        DiagonalGaussian: {"variance": np.linspace(0.2, 0.6, n_features), "relative_floor": np.array(1e-9), **origin},
        ClusterGaussian: {"variance": np.array([0.2, 0.4, 0.3]), "floor": np.array(1e-9), **origin},
        Noiseless: {"log_volume": np.array(0.0)},
    }.get(type(model.noise), {})
    posterior = {name: np.asarray(value) for name, value in model.posterior.initialize().items()}
    return Parameters(W, prior, noise, posterior)


def infer(model, parameters, Y, temperature):
    """What the posterior infers, and all statistics of the parts."""
    parameters = jax.tree.map(jnp.asarray, parameters)
    rows = jnp.asarray(Y)
    block = Block(rows, jnp.ones(len(Y)), model.noise.summarize(rows))
    inference = model.posterior.infer(model, parameters, block, jnp.asarray(temperature))
    return inference, block


def bound_model(model, n_features):
    posterior = model.posterior.bind(model, H, n_features, N)
    return Model(model.prior, model.combination, model.noise, posterior, model.update, LEARN)


def gradient_of(function, W):
    """Central differences."""
    slope = np.zeros_like(W)
    for place in np.ndindex(W.shape):
        step = np.zeros_like(W)
        step[place] = STEP
        slope[place] = (function(W + step) - function(W - step)) / (2 * STEP)
    return slope


# -------------------------------------------------------------------------------------------------------- the law


class States:
    """What enumeration says about causes that are on or off."""

    def __init__(self, model, parameters, Y, temperature):
        described = {
            "prior": type(model.prior).__name__,
            "rule": type(model.combination).__name__,
            "noise": type(model.noise).__name__,
            "upper": model.combination.upper,
            "floor": getattr(model.noise, "floor", None),
            "leak": getattr(model.noise, "leak", None),
        }
        most = model.posterior.max_active - 1 if isinstance(model.posterior, Truncated) else None
        self.found = oracle.Enumeration(described, parameters, Y, temperature, most)
        self.bound, self.free_energy = self.found.bound, self.found.free_energy.sum()
        self.sums = self.found.sums()
        self.noise = oracle.of_clusters(self.found) if isinstance(model.noise, ClusterGaussian) else self.sums
        self.expected = self.found.expected


class Spikes:
    """What enumeration says about causes that are on or off and have a strength."""

    def __init__(self, parameters, Y, temperature):
        found = oracle.SpikeEnumeration(parameters, Y, temperature)
        self.bound, self.free_energy, self.expected = found.bound, found.free_energy.sum(), found.expected
        self.noise = self.sums = found.sums()


class RealCauses:
    """What closed forms say about real causes: of those that a point estimate or a noiseless model finds, at these."""

    def __init__(self, model, parameters, Y, causes, temperature):
        W, noise = parameters.components, parameters.noise
        name, kind = type(model.prior).__name__, type(model.noise).__name__
        doubt = np.zeros((H, H))

        def log_prior(v):
            return oracle.log_prior(name, parameters.prior, v)

        def log_joint(v, y):
            return log_prior(v) + oracle.log_noise(kind, noise, y, v @ W, v)

        if isinstance(model.posterior, LinearGaussian):
            evidence, causes, doubt = oracle.of_gaussian_causes(parameters, Y)
            self.bound = evidence.sum() if temperature == 1 else None
            doubt = doubt * temperature
        elif isinstance(model.posterior, Inverse):
            causes = Y @ np.linalg.inv(W)
            self.bound = sum(map(log_prior, causes)) - N * np.log(abs(np.linalg.det(W)))
        else:
            self.bound = sum(map(log_joint, causes, Y))
            self._check_rest(log_joint, causes, Y, kinked=model.prior.kinked)
        self.free_energy = self.bound
        self.sums = {
            "causes": causes.sum(axis=0),
            "weight": float(N),
            "cause_data": causes.T @ Y,
            "cause_pairs": causes.T @ causes + N * doubt,
            "squares": (Y**2).sum(axis=0),
        }

        def of_inverse(components):
            found = Y @ np.linalg.inv(components)
            return sum(map(log_prior, found)) - N * np.log(abs(np.linalg.det(components)))

        def of_squares(components):
            spread = np.sum(components * (doubt @ components), axis=0)
            squares = np.sum((Y - causes @ components) ** 2, axis=0) + N * spread
            return -0.5 * np.sum(squares / noise["variance"])

        self.expected = of_inverse if isinstance(model.posterior, Inverse) else of_squares
        if isinstance(model.posterior, Inverse):
            slopes = np.array([gradient_of(lambda v: log_prior(v), one) for one in causes])
            self.sums["slope_causes"] = slopes.T @ causes
        else:
            spread = np.sum(W * (doubt @ W), axis=0)
            self.sums["residual"] = np.sum((Y - causes @ W) ** 2) + N * spread.sum()
            self.sums["active"] = 0.5 * np.diag(self.sums["cause_pairs"]) * np.sum(W**2 / noise["variance"], axis=1)
        self.noise = self.sums

    @staticmethod
    def _check_rest(log_joint, causes, Y, *, kinked):
        """A point estimate is where log p(v, y) has no slope; at a kink, both sides go down."""
        for v, y in zip(causes, Y, strict=True):
            for a in range(H):
                step = 1e-5 * np.eye(H)[a]
                up, down = log_joint(v + step, y) - log_joint(v, y), log_joint(v - step, y) - log_joint(v, y)
                assert max(up, down) < 1e-8 or (not kinked and abs(up - down) < 1e-7)


def agrees(found, expected, names):
    """Statistics of a part by their names; every one of them is known to the oracle."""
    for name, value in found.items():
        assert name in expected, (names, name)
        np.testing.assert_allclose(value, expected[name], rtol=1e-6, atol=1e-8, err_msg=f"{names}: {name}")


@pytest.mark.parametrize("group", GROUPS, ids=name_of)
def test_the_product_agrees_with_the_oracle(group):
    n_features = H if isinstance(group[0].noise, Noiseless) else D
    Y, first = rows_for(group[0].noise, n_features), bound_model(group[0], n_features)
    parameters = parameters_for(first, n_features)
    real = isinstance(first.prior, priors.Continuous)
    with double_precision(), jax.disable_jit():
        # A point is the same at every temperature.
        for temperature in (TEMPERATURE, 1.0) if first.posterior.n_states(H) > 1 else (1.0,):
            inference, block = infer(first, parameters, Y, temperature)
            if real:
                truth = RealCauses(first, parameters, Y, np.asarray(inference.mean_causes), temperature)
            elif isinstance(first.prior, priors.SpikeAndSlab):
                truth = Spikes(parameters, Y, temperature)
            else:
                truth = States(first, parameters, Y, temperature)
            if truth.bound is not None:
                np.testing.assert_allclose(inference.total_bound, truth.bound, rtol=1e-7)
                np.testing.assert_allclose(inference.total_free_energy, truth.free_energy, rtol=1e-7)
            models = [bound_model(model, n_features) for model in group]
            given = jax.tree.map(jnp.asarray, parameters)
            found = [(model, statistics_of(model, given, block, inference)) for model in models]
            for model, sums in found:
                if "curvature_squares" not in sums.components:
                    agrees(sums.components, truth.sums, model.update)
                    agrees(sums.prior, truth.sums, model.prior)
                    agrees(sums.noise, truth.noise, model.noise)
        slope = gradient_of(truth.expected, parameters.components)
        for model, sums in found:
            new = maximize_one(model, sums, jax.tree.map(jnp.asarray, parameters))
            check_step(model, parameters, sums, new, slope, truth, Y)


def check_step(model, parameters, sums, new, slope, truth, Y):
    """A step stays within bounds and leads uphill; where the oracle knows more, it is compared."""
    old, after = parameters.components, np.asarray(new.components)
    if isinstance(model.prior, priors.SpikeAndSlab):
        # The prior has brought components to length one, and put their lengths into the slabs.
        np.testing.assert_allclose(np.linalg.norm(after, axis=1), 1)
        after = np.asarray(model.update.maximize(model, jax.tree.map(jnp.asarray, parameters), sums.components))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(jax.device_get(new)))
    assert (after >= model.combination.bounds[0]).all()
    assert (after <= model.combination.bounds[1]).all()
    if isinstance(model.update, updates.Gradient):
        gradient = sums.components["target"] - sums.components["curvature"] * old
        np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-5)
    if isinstance(model.update, updates.NormalizedMean):
        np.testing.assert_allclose(after.sum(axis=1), old.sum(axis=1))
        return
    assert np.sum((after - old) * slope) >= -1e-7
    if model.update.is_monotone(model.combination):
        assert truth.expected(after) >= truth.expected(old) - 1e-9
    if is_monotone(model):
        again = infer(model, jax.device_get(new), Y, 1.0)[0]
        assert float(again.total_bound) >= truth.bound - 1e-9
