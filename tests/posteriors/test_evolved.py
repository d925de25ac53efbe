"""Evolved states: kept with their rows, bred by log joint, and never lost to worse ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import multicause
from multicause import LinearCauses, MaximalCauses, NoisyOrCauses
from multicause.arrays import double_precision
from multicause.combinations import Maximum, NoisyOr, Sum
from multicause.datasets import make_bars
from multicause.engines import Local
from multicause.model import Block, Model, Parameters
from multicause.noises import Gaussian, LeakyBernoulli
from multicause.posteriors import Evolved, Exact
from multicause.posteriors.breeding import children_of, is_first
from multicause.priors import Bernoulli, Graded, Ternary
from multicause.updates import ActivationShares, CreditMean, LeastSquares

BARS = make_bars(120, size=3, combination="sum", noise="gaussian", random_state=0)
LEARN = frozenset({"components", "activity", "noise"})
SETTINGS = {"init": BARS.causes * 0.8 + 0.3, "annealing": None, "random_state": 0}
# Exactly these rows and settings, so that programs are shared by all tests.
FEW = Evolved(8, n_children=8, n_generations=3)


def parts_of(kind):
    """A model and parameters of six causes."""
    random, H, D = np.random.RandomState(0), 6, 9
    if kind == "noisy-or":
        model = Model(Bernoulli(), NoisyOr(), LeakyBernoulli(), FEW, ActivationShares(), LEARN)
        Y, W, noise = (random.uniform(size=(30, D)) < 0.4).astype(float), random.uniform(0.1, 0.9, (H, D)), {}
    else:
        prior = {"ternary": Ternary(), "graded": Graded()}.get(kind, Bernoulli())
        rule, update = (Maximum(), CreditMean()) if kind == "maximum" else (Sum(), LeastSquares())
        model = Model(prior, rule, Gaussian(), FEW, update, LEARN)
        Y, W = random.normal(1, 2, (30, D)), np.abs(random.normal(size=(H, D)))
        noise = {"variance": np.array(0.5), "floor": np.array(1e-9), "origin": Y.mean(axis=0)}
    prior = model.prior.initialize(H, 0.3)
    return model, jax.tree.map(jnp.asarray, Parameters(W, prior, noise)), jnp.asarray(Y)


@pytest.mark.parametrize("kind", ["sum", "maximum", "noisy-or", "ternary", "graded"])
def test_at_fixed_parameters_the_bound_never_falls_and_approaches_the_evidence(kind):
    with double_precision():
        model, parameters, Y = parts_of(kind)
        block = Block(Y, jnp.ones(len(Y)), model.noise.summarize(Y))
        one = jnp.ones(())
        exact = Exact().bind(model, 6, 9, 30).infer(model, parameters, block, one)

        @jax.jit
        def course(key):
            memory = FEW.first_memory(model, parameters, block, key)

            def step(memory, _):
                found = FEW.infer_from_memory(model, parameters, block, one, memory)
                return FEW.breed(model, parameters, block, memory), found.log_evidence

            return jax.lax.scan(step, memory, None, 40)

        memory, bounds = course(jax.random.PRNGKey(1))
        assert (np.diff(bounds, axis=0) >= -1e-12).all()
        assert (bounds[-1] <= exact.log_evidence + 1e-9).all()
        gap = np.asarray(exact.log_evidence - bounds)
        assert gap[-1].mean() < gap[0].mean()
        assert np.asarray(is_first(memory["states"])).all()
        # The states that were kept are those with the largest log joint, nearly always.
        states = np.asarray(exact.recognize(1).states[:, 0])
        kept = np.array([0, *model.prior.strengths])[np.asarray(memory["states"])]
        found = (kept == states[:, None]).all(axis=2).any(axis=1)
        assert found.mean() > 0.8


def test_equal_states_are_found_and_children_are_states():
    random = np.random.RandomState(0)
    states = jnp.asarray(random.randint(0, 3, (5, 20, 3)), jnp.int8)
    expected = [[not any((row[k] == row[j]).all() for j in range(k)) for k in range(20)] for row in np.asarray(states)]
    np.testing.assert_array_equal(is_first(states), expected)
    children = np.asarray(children_of(jax.random.PRNGKey(0), states, 16, 3))
    assert children.shape == (5, 16, 3)
    assert children.min() >= 0
    assert children.max() <= 2
    single = jnp.zeros((1, 1, 4), jnp.int8)
    changed = np.asarray(children_of(jax.random.PRNGKey(0), single, 8, 2))
    assert (changed.sum(axis=-1) == 1).all()


def test_with_all_states_it_is_the_exact_posterior():
    every = LinearCauses(6, posterior=Evolved(64), max_iter=6, **SETTINGS).fit(BARS.data)
    exact = LinearCauses(6, posterior=Exact(), max_iter=6, **SETTINGS).fit(BARS.data)
    np.testing.assert_allclose(every.lower_bounds_, exact.lower_bounds_, rtol=1e-10)
    np.testing.assert_allclose(every.components_, exact.components_, rtol=1e-7, atol=1e-9)
    X = np.where(np.random.RandomState(0).uniform(size=BARS.data.shape) < 0.3, np.nan, BARS.data)
    np.testing.assert_allclose(every.score_samples(X), exact.score_samples(X), rtol=1e-8)
    np.testing.assert_allclose(every.impute(X), exact.impute(X), rtol=1e-8)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (MaximalCauses, {"noise": "gaussian"}),
        (NoisyOrCauses, {"value": 0.9, "combination": "noisy_or", "noise": "bernoulli"}),
    ],
)
def test_other_models_with_all_states_are_exact(kind, data):
    bars = make_bars(120, size=3, random_state=0, **data)
    settings = SETTINGS | {"init": bars.causes * 0.8 + 0.01, "max_iter": 4}
    fits = [kind(6, posterior=posterior, **settings).fit(bars.data) for posterior in (Evolved(64), Exact())]
    np.testing.assert_allclose(fits[0].lower_bounds_, fits[1].lower_bounds_, rtol=1e-9)
    np.testing.assert_allclose(fits[0].components_, fits[1].components_, rtol=1e-6, atol=1e-8)


def test_learning_raises_the_bound_whatever_the_blocks_are():
    models = [
        LinearCauses(6, posterior=FEW, max_iter=12, engine=engine, **SETTINGS).fit(BARS.data)
        for engine in (Local(), Local(memory_budget="300KB"))
    ]
    exact = LinearCauses(6, posterior=Exact(), max_iter=12, **SETTINGS).fit(BARS.data)
    for model in models:
        assert (np.diff(model.lower_bounds_) > -1e-9).all()
        assert model.lower_bound_ == pytest.approx(exact.lower_bound_, abs=0.5)
        assert model.score(BARS.data) <= exact.score(BARS.data) + 1.0


def test_streams_files_and_other_engines(tmp_path):
    model = LinearCauses(6, posterior=FEW, max_iter=5, **SETTINGS).fit(BARS.data)
    model.save(tmp_path / "model")
    loaded = multicause.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(BARS.data), model.transform(BARS.data))
    loaded.partial_fit(BARS.data[:50])
    assert np.isfinite(loaded.lower_bound_)
    path = tmp_path / "rows.npy"
    np.save(path, np.tile(BARS.data, (4, 1)))
    rows = np.load(path, mmap_mode="r")
    with pytest.raises(ValueError, match="keeps states of every row between iterations, which rows in files"):
        LinearCauses(6, posterior=FEW, engine=Local(memory_budget="30KB"), **SETTINGS).fit(rows)


def test_settings_are_checked():
    with pytest.raises(ValueError, match="population of Evolved must be a whole number of at least 1; got 0"):
        LinearCauses(2, posterior=Evolved(0)).fit(BARS.data)
