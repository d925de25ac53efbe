"""Evolved states: kept with their rows, bred by log joint, and never lost to worse ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone

import multicause
from multicause import LinearCauses, MaximalCauses, NoisyOrCauses
from multicause.arrays import double_precision
from multicause.callbacks import Checkpoint
from multicause.combinations import Maximum, NoisyOr, Sum
from multicause.datasets import make_bars
from multicause.engines import Dask, Local, kept_states
from multicause.model import Model
from multicause.noises import DiagonalGaussian, Gaussian, LeakyBernoulli
from multicause.posteriors import Evolved, Exact
from multicause.posteriors.evolution.bit_sets import packed, unpacked
from multicause.posteriors.evolution.breeding import is_first
from multicause.posteriors.expectations.row_states import RowStates
from multicause.priors import Bernoulli, Graded, Ternary
from multicause.records import Block, Parameters
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
        one = jnp.ones(())

        @jax.jit
        def enumerate_states(Y):
            block = Block(Y, jnp.ones(len(Y)), model.noise.summarize(Y))
            exact = Exact().bind(model, 6, 9, 30).infer(model, parameters, block, one)
            return block, exact.log_evidence, exact.recognize(1).states[:, 0]

        @jax.jit
        def evolve_repeatedly(block, key):
            kept_states = FEW.first_states(model, parameters, block, jax.random.bits(key, (len(Y),), jnp.uint32))

            def step(kept_states, _):
                found, kept_states = FEW.evolve(model, parameters, block, one, kept_states)
                return kept_states, found.log_evidence

            kept_states, bounds = jax.lax.scan(step, kept_states, None, 40)
            levels = jnp.moveaxis(kept_states["states"], -1, 0)
            if FEW.flips(model):
                levels = jnp.transpose(unpacked(kept_states["states"], 6), (2, 1, 0)).astype(jnp.int8)
            return bounds, levels, is_first(levels)

        block, log_evidence, states = enumerate_states(Y)
        found = evolve_repeatedly(block, jax.random.PRNGKey(1))
        log_evidence, states, bounds, levels, first = map(np.asarray, (log_evidence, states, *found))
        assert (np.diff(bounds, axis=0) >= -1e-12).all()
        assert (bounds[-1] <= log_evidence + 1e-9).all()
        gap = log_evidence - bounds
        assert gap[-1].mean() < gap[0].mean()
        assert first.all()
        # The states that were kept are those with the largest log joint, nearly always.
        kept = np.array([0, *model.prior.strengths])[levels]
        found = (kept == states[:, None]).all(axis=2).any(axis=1)
        assert found.mean() > 0.8


@pytest.mark.parametrize("H", [8, 18])
def test_states_of_equal_causes_are_counted_once(H):
    """Half of the causes are copies of the others, so that many states have equal log joints."""
    with double_precision():
        random = np.random.RandomState(0)
        W = random.normal(size=(H // 2, 9))
        Y = (random.uniform(size=(30, H // 2)) < 2 / H) @ W + 0.3 * random.normal(size=(30, 9))
        posterior = Evolved(32, n_children=16, n_generations=4)
        model = Model(Bernoulli(), Sum(), Gaussian(), posterior, LeastSquares(), LEARN)
        noise = {"variance": np.array(0.3), "floor": np.array(1e-9), "origin": Y.mean(axis=0)}
        values = Parameters(np.concatenate([W, W]), model.prior.initialize(H, 2 / H), noise)
        parameters = jax.tree.map(jnp.asarray, values)
        block = Block(jnp.asarray(Y), jnp.ones(30), model.noise.summarize(jnp.asarray(Y)))
        found = jax.jit(lambda: _probabilities_and_means(posterior.infer(model, parameters, block, jnp.ones(()))))()
        states, probabilities, means = map(np.asarray, found)
    for own, there in zip(states, probabilities > 0, strict=True):
        assert len(np.unique(own[there], axis=0)) == there.sum()
    np.testing.assert_allclose(np.einsum("ns,nsh->nh", probabilities, states), means, atol=1e-6)


def _probabilities_and_means(inference):
    return inference._states, inference.probabilities, inference.mean_causes


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


# So many rows that a small budget divides them into several blocks.
ROWS = np.tile(BARS.data, (20, 1))
ENGINES = LinearCauses(6, posterior=FEW, max_iter=5, tol=0, **SETTINGS)


@pytest.fixture(scope="module")
def in_one_block():
    model = clone(ENGINES).fit(ROWS)
    assert (np.diff(model.lower_bounds_) > -1e-9).all()
    exact = clone(ENGINES).set_params(posterior=Exact()).fit(ROWS)
    assert model.lower_bound_ == pytest.approx(exact.lower_bound_, abs=0.5)
    assert model.lower_bound_ <= exact.lower_bound_ + 1e-9
    return model


def assert_same(found, model):
    """States of rows do not depend on where the rows are."""
    np.testing.assert_allclose(found.lower_bounds_, model.lower_bounds_, rtol=1e-9)
    np.testing.assert_allclose(found.components_, model.components_, rtol=1e-6, atol=1e-9)


def test_states_follow_rows_in_blocks_and_in_files(in_one_block, tmp_path, monkeypatch):
    assert_same(clone(ENGINES).set_params(engine=Local(memory_budget="900KB")).fit(ROWS), in_one_block)
    np.save(tmp_path / "rows.npy", ROWS)
    stored = np.load(tmp_path / "rows.npy", mmap_mode="r")
    kept = []
    room = kept_states._room
    monkeypatch.setattr(kept_states, "_room", lambda *arguments: kept.append(room(*arguments)) or kept[-1])
    engine = Local(memory_budget="120KB")
    streamed = (
        clone(ENGINES).set_params(engine=engine).set_callbacks(Checkpoint(tmp_path, max_files=10, every=1)).fit(stored)
    )
    assert_same(streamed, in_one_block)
    # States of all rows exceed the budget, and are in a temporary file.
    assert all(isinstance(values, np.memmap) for values in kept)
    assert len({values.shape[1] for values in kept}) == 1 < kept[0].shape[1]
    # Checkpoints have the states, whatever the engine is that goes on.
    middle = sorted(tmp_path.glob("*.checkpoint"))[2]
    assert_same(clone(ENGINES).set_params(engine=Local()).fit(ROWS, resume=middle), in_one_block)
    assert_same(clone(ENGINES).set_params(engine=engine).fit(stored, resume=middle), in_one_block)


def test_states_stay_on_the_workers_of_a_cluster(in_one_block, tmp_path):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        cluster_fit = clone(ENGINES).set_params(engine=Dask(client))
        found = clone(cluster_fit).set_callbacks(Checkpoint(tmp_path, max_files=10, every=1)).fit(ROWS)
        assert_same(found, in_one_block)
        middle = sorted(tmp_path.glob("*.checkpoint"))[2]
        assert_same(clone(cluster_fit).fit(ROWS, resume=middle), in_one_block)
    assert_same(clone(ENGINES).fit(ROWS, resume=middle), in_one_block)


def test_saved_models_breed_states_of_new_rows(in_one_block, tmp_path):
    in_one_block.save(tmp_path / "model")
    loaded = multicause.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(ROWS), in_one_block.transform(ROWS))
    loaded.partial_fit(BARS.data[:50])
    assert np.isfinite(loaded.lower_bound_)


@pytest.mark.parametrize("H", [12, 70])
def test_moments_and_scores_from_flips_are_those_of_means(H):
    """In single precision, with data far from zero, beside sums over all states and features."""
    random = np.random.RandomState(0)
    n, D = 40, 12
    W = random.normal(size=(H, D)).astype(np.float32)
    W[:2] += 300
    states = random.uniform(size=(H, 9, n)) < 0.05
    states[:2] = False
    states[random.randint(0, 2, (9, n)), np.arange(9)[:, None], np.arange(n)] = True
    Y = (W[0] + random.normal(size=(n, D))).astype(np.float32)
    model = Model(Bernoulli(), Sum(), DiagonalGaussian(), FEW, LeastSquares(), LEARN)
    variance = random.uniform(0.5, 2, D)
    with double_precision():
        noise = {"variance": variance, "relative_floor": np.array(1e-9), "origin": Y.mean(axis=0)}
        parameters = Parameters(W, {"activity": random.uniform(0.1, 0.3, H)}, noise)
        parameters = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), parameters)
        block = Block(jnp.asarray(Y), jnp.asarray(random.uniform(1, 2, n), jnp.float32), jnp.zeros(n, jnp.float32))
        dense = np.moveaxis(states, (0, 1, 2), (2, 1, 0))

        @jax.jit
        def from_flips(parameters, block, states):
            kept_states = {"states": packed(states), "has": jnp.ones((9, n), bool)}
            return sums_of(FEW.infer_from_states(model, parameters, block, jnp.full((), 50.0), kept_states))

        @jax.jit
        def from_means(parameters, block, states):
            exact = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), (parameters, block))
            return sums_of(RowStates(model, *exact, jnp.full((), 50.0), states.astype(jnp.float64)))

        found, expected = from_flips(parameters, block, states), from_means(parameters, block, dense)
    np.testing.assert_allclose(found.pop("free_energy"), expected.pop("free_energy"), rtol=1e-4, atol=0.05)
    for name, want in expected.items():
        largest = np.abs(want).max()
        np.testing.assert_allclose(found[name], want, rtol=2e-3, atol=2e-3 * largest, err_msg=name)


def sums_of(inference):
    names = ("mean_causes", "cause_pairs", "total_causes", "residuals", "total_log_likelihood", "total_bound")
    return {name: getattr(inference, name) for name in ("free_energy", *names)}


def test_settings_are_checked():
    with pytest.raises(ValueError, match="population of Evolved must be a whole number of at least 1; got 0"):
        LinearCauses(2, posterior=Evolved(0)).fit(BARS.data)
