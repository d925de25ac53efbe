"""Laws that hold for every model (DESIGN: derivatives, recovery and errors have files of their own)."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multicause.arrays import double_precision
from multicause.em.e_step import expect_one
from multicause.engines import Local
from multicause.records import Block
from tests.laws.configurations import CAUSES, CONFIGURATIONS, repetitions
from tests.oracles import enumeration as oracle

pytestmark = [
    pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def fitted(configuration, seed, **changes):
    X = configuration.rows(seed)
    return configuration.make(**changes).fit(X), X


def noise_scale(model):
    return None if model.noise_variance_ is None else np.sqrt(float(model.noise_variance_))


def oracle_table(configuration, model, X):
    return oracle.log_joint(
        X,
        model.components_.astype(float),
        model.activity_.astype(float),
        configuration.combination,
        configuration.noise,
        noise_scale(model),
    )


def statistics(model, X, weights=None, temperature=1.0):
    """What one E-step of a fitted model gets from the rows, as NumPy arrays."""
    weights = np.ones(len(X)) if weights is None else weights
    with double_precision():
        rows = jnp.asarray(X)
        block = Block(rows, jnp.asarray(weights, dtype=X.dtype), model._model.noise.summarize(rows))
        run = jax.jit(expect_one, static_argnums=0)
        return jax.device_get(run(model._model, block, model._parameters, jnp.asarray(temperature)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_evidence_equals_enumeration(configuration, dtype, seed):
    X = configuration.rows(seed).astype(dtype)
    model = configuration.make(max_iter=3).fit(X)
    expected = oracle.log_evidence(oracle_table(configuration, model, X.astype(float)))
    assert model.score_samples(X).dtype == dtype
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-10 if dtype == np.float64 else 1e-4)
    np.testing.assert_allclose(model.score(X), expected.mean(), rtol=1e-10 if dtype == np.float64 else 1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("temperature", [1.0, 1.7])
def test_statistics_equal_enumeration(configuration, dtype, temperature, seed):
    X = configuration.rows(seed).astype(dtype)
    model = configuration.make(max_iter=3).fit(X)
    weights = np.random.RandomState(seed).uniform(0.5, 2, len(X)).astype(dtype)
    found = statistics(model, X, weights, temperature)
    table = oracle_table(configuration, model, X.astype(float))
    q = oracle.posterior(table, temperature)
    W = model.components_.astype(float)
    credit_temperature = max(temperature, 1.02)  # Maximum's default for the credit alone
    variance = oracle.variance_of(configuration.noise, noise_scale(model))
    settings = configuration.combination, credit_temperature, weights, variance
    expected = oracle.expectations(X.astype(float), W, q, *settings)
    tolerance = 1e-10 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(found.bound, weights @ oracle.bound(table, temperature), rtol=tolerance)
    for record in (found.components, found.prior, found.noise):
        assert record.keys() <= expected.keys()
        for name in record:
            scale = np.abs(expected[name]).max()
            np.testing.assert_allclose(record[name], expected[name], rtol=tolerance, atol=tolerance * scale)


def test_posterior_mean_and_reconstruction_equal_enumeration(configuration, seed):
    model, X = fitted(configuration, seed, max_iter=3)
    q = oracle.posterior(oracle_table(configuration, model, X))
    states = oracle.all_states(CAUSES)
    means = np.array([oracle.mean(s, model.components_, configuration.combination) for s in states])
    np.testing.assert_allclose(model.transform(X), q @ states, atol=1e-10)
    np.testing.assert_allclose(model.reconstruct(X), q @ means, atol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(states), means, atol=1e-12)


def test_recognized_states_are_the_most_probable(configuration, seed):
    model, X = fitted(configuration, seed, max_iter=3)
    q = oracle.posterior(oracle_table(configuration, model, X))
    states = oracle.all_states(CAUSES)
    found = model.recognize(X, top=None)
    assert found.states.shape == (len(X), 2**CAUSES, CAUSES)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(found.probabilities, -np.sort(-q, axis=1), atol=1e-10)
    np.testing.assert_allclose(found.log_evidence, model.score_samples(X))
    best = model.recognize(X, top=2)
    assert best.states.shape == (len(X), 2, CAUSES)
    for n in range(len(X)):
        number = int(np.flatnonzero((states == best.states[n, 0]).all(axis=1))[0])
        assert q[n, number] == pytest.approx(q[n].max())
        assert best.probabilities[n, 0] == pytest.approx(q[n].max())


def test_bound_never_falls_without_annealing(configuration, seed):
    model, X = fitted(configuration, seed, max_iter=40, tol=0.0)
    rises = np.diff(model.lower_bounds_)
    assert rises.min() > -1e-9 * np.abs(model.lower_bounds_).max()
    assert model.lower_bounds_[-1] == model.lower_bound_ == pytest.approx(model.score(X), rel=1e-12)
    assert len(model.lower_bounds_) == model.n_iter_ + 1


def test_converged_only_when_at_rest(configuration, seed):
    model, _ = fitted(configuration, seed, max_iter=400, tol=1e-4)
    assert model.converged_ == (model.outcome_ in ("converged", "cause_died"))
    if model.converged_:
        assert model.lower_bounds_[-1] - model.lower_bounds_[-4] < 1e-3  # ten iterations of tol at most


def test_blocks_do_not_matter(configuration, seed):
    model, X = fitted(configuration, seed)
    per_row = model.posterior_.bytes_per_row(CAUSES, X.shape[1], X.itemsize)
    fixed = model.posterior_.bytes_of_states(CAUSES, X.shape[1], X.itemsize)
    small = configuration.make(engine=Local(memory_budget=fixed + 7 * per_row)).fit(X)  # 6 blocks, the last padded
    np.testing.assert_allclose(small.components_, model.components_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(small.transform(X), model.transform(X), atol=1e-8)
    np.testing.assert_allclose(small.lower_bounds_, model.lower_bounds_, rtol=1e-10)


def test_statistics_of_the_whole_are_the_sum_of_parts(configuration, seed):
    model, X = fitted(configuration, seed)
    whole, parts = statistics(model, X), statistics(model, X[:20]) + statistics(model, X[20:])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-9), whole, parts)


def test_integer_weight_is_repetition(configuration, seed):
    X = configuration.rows(seed)
    counts = repetitions(seed)
    init = np.abs(np.random.RandomState(seed).normal(3, 1, (CAUSES, X.shape[1])))
    weighted = configuration.make(init=init).fit(X, sample_weight=counts)
    repeated = configuration.make(init=init).fit(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(weighted.activity_, repeated.activity_, rtol=1e-8)
    np.testing.assert_allclose(weighted.lower_bound_, repeated.lower_bound_, rtol=1e-10)


def test_single_precision_follows_double(configuration, seed):
    double, X = fitted(configuration, seed, max_iter=4)
    single = configuration.make(max_iter=4).fit(X.astype(np.float32))
    assert single.components_.dtype == single.activity_.dtype == np.float32
    assert double.components_.dtype == np.float64
    np.testing.assert_allclose(single.components_, double.components_, rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(single.lower_bound_, double.lower_bound_, rtol=1e-4)


def test_memory_order_does_not_matter(configuration):
    model, X = fitted(configuration, 0)
    other = configuration.make().fit(np.asfortranarray(X))
    np.testing.assert_array_equal(other.components_, model.components_)


def test_same_seed_same_result_and_restarts_keep_the_best(configuration):
    model, X = fitted(configuration, 0)
    np.testing.assert_array_equal(configuration.make().fit(X).components_, model.components_)
    if configuration.settings.get("init") is None:
        assert not np.allclose(configuration.make(random_state=1).fit(X).components_, model.components_)
        assert configuration.make(n_init=3).fit(X).lower_bound_ >= model.lower_bound_ - 1e-9


def test_sample_has_the_models_moments(configuration, seed):
    """Means of 20000 samples within 5 standard errors in all of some dozen comparisons: false alarm below 1e-5."""
    model, _ = fitted(configuration, seed)
    n = 20_000
    rows, causes = model.sample(n, random_state=seed)
    assert set(np.unique(causes)) <= {0, 1}
    error = np.sqrt(model.activity_ * (1 - model.activity_) / n) + 1e-12
    assert (np.abs(causes.mean(axis=0) - model.activity_) < 5 * error + 1e-6).all()
    noise = rows - np.maximum(model.inverse_transform(causes), 0 if configuration.noise == "poisson" else -np.inf)
    assert (np.abs(noise.mean(axis=0)) < 5 * rows.std(axis=0) / np.sqrt(n) + 1e-6).all()
    again, _ = model.sample(5, random_state=seed)
    np.testing.assert_array_equal(again, model.sample(5, random_state=seed)[0])


def test_partial_fit_learns_from_a_stream(configuration):
    batches = np.split(configuration.rows(0, n=400), 10)
    model = configuration.make()
    before = None
    for batch in batches:
        model.partial_fit(batch)
        before = np.mean([model.score(X) for X in batches]) if before is None else before
    assert model.n_iter_ == 10
    assert np.mean([model.score(X) for X in batches]) > before
    assert np.isfinite(model.components_).all()
    full = configuration.make(max_iter=30).fit(batches[0])
    score = full.score(batches[0])
    full.partial_fit(batches[0])  # one more step on the same data must not forget what was learned
    assert full.score(batches[0]) > score - 0.05 * abs(score)


def test_save_and_load(configuration, tmp_path):
    import multicause

    model, X = fitted(configuration, 0)
    model.save(tmp_path / "model.mc")
    loaded = multicause.load(tmp_path / "model.mc")
    assert type(loaded) is type(model)
    assert str(loaded.get_params()) == str(model.get_params())
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    np.testing.assert_array_equal(loaded.lower_bounds_, model.lower_bounds_)
    np.testing.assert_array_equal(loaded.sample(5, random_state=0)[0], model.sample(5, random_state=0)[0])
    np.testing.assert_array_equal(loaded.partial_fit(X).components_, model.partial_fit(X).components_)


def test_all_starts_agree_with_one(configuration):
    """Starts learned side by side are the same as learned alone."""
    X = configuration.rows(0)
    init = np.abs(np.random.RandomState(3).normal(3, 1, (CAUSES, X.shape[1])))
    alone, together = configuration.make(init=init).fit(X), configuration.make(init=init, n_init=3).fit(X)
    np.testing.assert_allclose(together.components_, alone.components_, rtol=1e-9, atol=1e-12)


def test_a_warning_names_remedies(configuration):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = configuration.make(max_iter=1).fit(configuration.rows(0))
    assert model.outcome_ == "max_iter"
    assert any("(1) Raise max_iter" in str(w.message) for w in caught)
