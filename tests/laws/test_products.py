"""The law of the whole product: parts that fit together learn what an oracle says.

Every prior × combination × noise × posterior × update that fits is evaluated on six rows and three causes: its bound
and all its sums agree with enumeration or closed forms, its step leads uphill by finite differences, and what it
declares to be monotone is. Most programs run without compilation, which would take minutes for all of them.
"""

from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multicause import priors, updates
from multicause.arrays import double_precision
from multicause.em.e_step import statistics_of
from multicause.em.m_step import maximize_one
from multicause.em.step import is_monotone
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
from multicause.posteriors import Beam, Evolved, Inverse, LinearGaussian, MostProbable, Truncated
from multicause.records import Block, Parameters
from multicause.wiring import ROLES
from tests.laws.products import GROUPS, LEARN, D, H, N
from tests.oracles import parts as oracle

TEMPERATURE = 1.25
STEP = 1e-6
# Parts with so many small operations that compiling them takes less time than running them one by one.
COMPILED = Beam, Evolved, Inverse, MostProbable, priors.Graded, priors.SpikeAndSlab


class Parts(NamedTuple):
    """What a generative model is made of."""

    prior: Any
    combination: Any
    noise: Any


def name_of(group):
    return "-".join(str(getattr(group[0], role)).replace("least_temperature=1.0", "") for role in ROLES[:-1])


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
    return Parameters(W, prior, noise, {})


def infer(model, parameters, Y, temperature):
    """What the posterior infers, and all statistics of the parts."""
    parameters = jax.tree.map(jnp.asarray, parameters)
    rows = jnp.asarray(Y)
    block = Block(rows, jnp.ones(len(Y)), model.noise.summarize(rows))
    inference = model.posterior.infer(model, parameters, block, jnp.asarray(temperature))
    return inference, block


def statistics_of_group(models, parameters, Y, temperature):
    """All statistics of the first model, those of the other updates, and mean causes if these are real numbers."""
    first = models[0]
    inference, block = infer(first, parameters, Y, temperature)
    # Models of a group differ in their updates alone, and have the other statistics in common.
    shared = statistics_of(first, parameters, block, inference)
    found = [shared.components] + [model.update.statistics(model, parameters, inference) for model in models[1:]]
    return shared, found, inference.mean_causes if isinstance(first.prior, priors.Continuous) else None


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


def curvatures_of(function, v):
    """Second derivatives along each axis, by differences of the fourth order."""
    size = 5e-3
    steps = size * np.eye(len(v))
    near = [function(v + step) + function(v - step) for step in steps]
    far = [function(v + 2 * step) + function(v - 2 * step) for step in steps]
    return (16 * np.array(near) - np.array(far) - 30 * function(v)) / (12 * size**2)


class States:
    """What enumeration says about causes that are on or off."""

    def __init__(self, model, parameters, Y, temperature, most_credited):
        described = {
            "prior": type(model.prior).__name__,
            "rule": type(model.combination).__name__,
            "noise": type(model.noise).__name__,
            "upper": model.combination.upper,
            "floor": getattr(model.noise, "floor", None),
            "leak": getattr(model.noise, "leak", None),
        }
        self.found = oracle.Enumeration(described, parameters, Y, temperature, most_credited)
        self.bound, self.free_energy = self.found.bound, self.found.free_energy.sum()
        self.sums = self.found.sums()
        self.noise = oracle.of_clusters(self.found) if isinstance(model.noise, ClusterGaussian) else self.sums
        self.expected = self.found.expected
        self.slope = gradient_of(self.expected, parameters.components)


class Spikes:
    """What enumeration says about causes that are on or off and have a strength."""

    def __init__(self, parameters, Y, temperature):
        found = oracle.SpikeEnumeration(parameters, Y, temperature)
        self.bound, self.free_energy, self.expected = found.bound, found.free_energy.sum(), found.expected
        self.noise = self.sums = found.sums()
        self.slope = gradient_of(self.expected, parameters.components)


@cache
def enumerated(parts, most_credited, temperature):
    """What enumeration says about a generative model, once for all posteriors."""
    Y, parameters = rows_for(parts.noise, D), parameters_for(parts, D)
    if isinstance(parts.prior, priors.SpikeAndSlab):
        return Spikes(parameters, Y, temperature)
    return States(parts, parameters, Y, temperature, most_credited)


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
            curvatures = np.array([curvatures_of(log_prior, one) for one in causes])
            self.sums["curvature_squares"] = curvatures.T @ causes**2
            self.sums["active"] = np.full(H, float(N))  # without noise, every cause takes part in every row
        else:
            spread = np.sum(W * (doubt @ W), axis=0)
            self.sums["residual"] = np.sum((Y - causes @ W) ** 2) + N * spread.sum()
            self.sums["active"] = 0.5 * np.diag(self.sums["cause_pairs"]) * np.sum(W**2 / noise["variance"], axis=1)
        self.noise = self.sums
        self.slope = gradient_of(self.expected, W)

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
    parameters = parameters_for(first, n_features)._replace(posterior=jax.device_get(first.posterior.initialize()))
    most_credited = first.posterior.max_active - 1 if isinstance(first.posterior, Truncated) else None
    models = [bound_model(model, n_features) for model in group]
    compiled = any(isinstance(part, COMPILED) for part in (first.prior, first.posterior))
    compute = jax.jit(partial(statistics_of_group, models)) if compiled else partial(statistics_of_group, models)
    with double_precision(), jax.disable_jit():
        given = jax.tree.map(jnp.asarray, parameters)
        # A point is the same at every temperature.
        for temperature in (TEMPERATURE, 1.0) if first.posterior.n_states(H) > 1 else (1.0,):
            with jax.disable_jit(not compiled):
                shared, found, causes = compute(given, Y, temperature)
            if isinstance(first.prior, priors.Continuous):
                truth = RealCauses(first, parameters, Y, np.asarray(causes), temperature)
            else:
                truth = enumerated(Parts(first.prior, first.combination, first.noise), most_credited, temperature)
            if truth.bound is not None:
                np.testing.assert_allclose(shared.bound, truth.bound, rtol=1e-7)
                np.testing.assert_allclose(shared.free_energy, truth.free_energy, rtol=1e-7)
            agrees(shared.prior, truth.sums, first.prior)
            agrees(shared.noise, truth.noise, first.noise)
            for model, sums in zip(models, found, strict=True):
                assert sums
                agrees(sums, truth.sums, model.update)
        for model, sums in zip(models, found, strict=True):
            statistics = replace(shared, components=sums)
            new = maximize_one(model, statistics, given)
            check_step(model, parameters, statistics, new, truth)
            if is_monotone(model):
                with jax.disable_jit(not compiled):
                    again = compute(new, Y, 1.0)[0].bound if compiled else infer(model, new, Y, 1.0)[0].total_bound
                assert float(again) >= truth.bound - 1e-9


def check_step(model, parameters, sums, new, truth):
    """A step stays within bounds and leads uphill; where the oracle knows more, it is compared."""
    old, after, slope = parameters.components, np.asarray(new.components), truth.slope
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
