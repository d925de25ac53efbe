"""Laws of missing values: NaN marks values that were not observed, and all else follows from the observed ones."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multicause.arrays import double_precision
from multicause.em.e_step import expect_one
from multicause.engines import Local
from multicause.inference import summarize
from multicause.records import Block
from tests.laws.configurations import CAUSES, CONFIGURATIONS, repetitions
from tests.oracles import enumeration as oracle

pytestmark = [
    pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
EMPTY = 5  # a row without any value
expect = jax.jit(expect_one, static_argnums=0)


def with_gaps(X, seed=0, share=0.4):
    """Rows of which some values are NaN, and one row without any value."""
    gaps = np.random.RandomState(seed).uniform(size=X.shape) < share
    gaps[EMPTY] = True
    return np.where(gaps, np.nan, X).astype(X.dtype)


def fitted(configuration, seed, **changes):
    X = with_gaps(configuration.rows(seed), seed)
    return configuration.make(**{"max_iter": 3, **changes}).fit(X), X


def noise_scale(model):
    return None if model.noise_variance_ is None else np.sqrt(float(model.noise_variance_))


def oracle_table(configuration, model, X):
    parameters = (model.components_.astype(float), model.activity_.astype(float))
    return oracle.log_joint(X, *parameters, configuration.combination, configuration.noise, noise_scale(model))


def statistics(model, X, weights=None, temperature=1.0, missing=True):
    """What one E-step of a fitted model gets from the rows, as NumPy arrays."""
    parts = replace(model._model, missing=missing)
    weights = np.ones(len(X)) if weights is None else weights
    with double_precision():
        rows = jnp.asarray(X)
        block = Block(rows, jnp.asarray(weights, dtype=X.dtype), summarize(parts.noise, parts.missing, rows))
        return jax.device_get(expect(parts, block, model._parameters, jnp.asarray(temperature)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_evidence_is_that_of_the_observed_values(configuration, dtype, seed):
    X = with_gaps(configuration.rows(seed), seed).astype(dtype)
    model = configuration.make(max_iter=3).fit(X)
    expected = oracle.log_evidence(oracle_table(configuration, model, X.astype(float)))
    tolerance = 1e-10 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(model.lower_bound_, expected.mean(), rtol=tolerance)
    assert model.score_samples(X).dtype == dtype


@pytest.mark.parametrize("temperature", [1.0, 1.7])
def test_statistics_equal_enumeration(configuration, temperature, seed):
    model, X = fitted(configuration, seed)
    weights = np.random.RandomState(seed).uniform(0.5, 2, len(X))
    found = statistics(model, X, weights, temperature)
    table = oracle_table(configuration, model, X)
    q = oracle.posterior(table, temperature)
    variance = oracle.variance_of(configuration.noise, noise_scale(model))
    settings = configuration.combination, max(temperature, 1.02), weights, variance
    expected = oracle.expectations(X, model.components_, q, *settings)
    expected["observed"] = weights @ (~np.isnan(X)).sum(axis=1)
    np.testing.assert_allclose(found.bound, weights @ oracle.bound(table, temperature), rtol=1e-10)
    for record in (found.components, found.prior, found.noise):
        assert record.keys() <= expected.keys()
        for name, values in record.items():
            counts = name == "active" and np.ndim(values) == 2
            wanted = expected["active_where_observed" if counts else name]
            assert np.shape(values) == np.shape(wanted)
            np.testing.assert_allclose(values, wanted, rtol=1e-9, atol=1e-10 * np.abs(wanted).max())


def test_a_row_without_any_value_gets_the_prior(configuration, seed):
    model, X = fitted(configuration, seed)
    np.testing.assert_allclose(model.transform(X)[EMPTY], model.activity_, atol=1e-9)
    np.testing.assert_allclose(model.score_samples(X)[EMPTY], 0, atol=1e-9)
    states = oracle.all_states(CAUSES)
    prior = np.prod(np.where(states, model.activity_, 1 - model.activity_), axis=1)
    means = np.array([oracle.mean(s, model.components_, configuration.combination) for s in states])
    np.testing.assert_allclose(model.impute(X)[EMPTY], prior @ means, atol=1e-9)


def test_a_mask_of_nothing_changes_nothing(configuration, seed):
    model, X = fitted(configuration, seed)[0], configuration.rows(seed)
    with double_precision():
        assert not configuration.make()._wire(Local().load(X, np.ones(len(X)))).missing
    plain, masked = (statistics(model, X, missing=missing) for missing in (False, True))
    for name in ("weight", "seen", "bound", "free_energy"):
        np.testing.assert_allclose(getattr(masked, name), getattr(plain, name), rtol=1e-10)
    for name in ("components", "prior", "noise", "posterior"):
        ours, theirs = getattr(masked, name), getattr(plain, name)
        for key, value in theirs.items():
            value = np.broadcast_to(value.reshape(value.shape + (1,) * (ours[key].ndim - value.ndim)), ours[key].shape)
            np.testing.assert_allclose(ours[key], value, rtol=1e-9, atol=1e-9)


def test_bound_never_falls(configuration, seed):
    model, X = fitted(configuration, seed, max_iter=40, tol=0.0)
    assert np.diff(model.lower_bounds_).min() > -1e-9 * np.abs(model.lower_bounds_).max()
    assert model.lower_bound_ == pytest.approx(model.score(X), rel=1e-12)


def test_rows_do_not_depend_on_each_other(configuration):
    model, X = fitted(configuration, 0)
    complete = configuration.rows(0)[:4]
    mixed = np.concatenate([complete, X[4:]])
    np.testing.assert_allclose(model.transform(mixed)[:4], model.transform(complete), atol=1e-10)
    np.testing.assert_allclose(model.transform(X[3:7]), model.transform(X)[3:7], atol=1e-10)
    np.testing.assert_allclose(model.score_samples(mixed)[:4], model.score_samples(complete), rtol=1e-10)


def test_statistics_of_the_whole_are_the_sum_of_parts(configuration):
    """Parts are filled up to one size with rows that have no weight, as in blocks of an engine."""
    model, X = fitted(configuration, 0)
    part = np.arange(len(X)) < 20
    parts = [statistics(model, np.where(part[:, None], rows, 0.0), part) for rows in (X, np.roll(X, 20, axis=0))]
    whole, parts = statistics(model, X), parts[0] + parts[1]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-9), whole, parts)


def test_integer_weight_is_repetition(configuration):
    X = with_gaps(configuration.rows(0))
    counts = repetitions(0)
    init = np.abs(np.random.RandomState(0).normal(3, 1, (CAUSES, X.shape[1])))
    weighted = configuration.make(init=init).fit(X, sample_weight=counts)
    repeated = configuration.make(init=init).fit(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(weighted.lower_bound_, repeated.lower_bound_, rtol=1e-10)


def test_impute_keeps_observed_values(configuration):
    model, X = fitted(configuration, 0)
    for rows in (X, X.astype(np.float32)):
        whole, observed = model.impute(rows), ~np.isnan(rows)
        assert whole.dtype == rows.dtype
        assert whole[observed].tobytes() == rows[observed].tobytes()
        np.testing.assert_allclose(whole[~observed], model.reconstruct(rows)[~observed], rtol=1e-6)
    q = oracle.posterior(oracle_table(configuration, model, X))
    means = np.array([oracle.mean(s, model.components_, configuration.combination) for s in oracle.all_states(CAUSES)])
    np.testing.assert_allclose(model.impute(X), np.where(np.isnan(X), q @ means, X), atol=1e-9)


def test_partial_fit_save_and_load(configuration, tmp_path):
    import multicause

    gaps, complete = with_gaps(configuration.rows(0)), configuration.rows(1)
    # The first batch may be complete and a later one not, and the other way round.
    for first, then in ((gaps, gaps), (complete, gaps), (gaps, complete)):
        model = configuration.make().partial_fit(first).partial_fit(then)
        assert np.isfinite(model.components_).all()
        assert model._model.missing
    model = configuration.make(max_iter=3).fit(gaps)
    model.save(tmp_path / "model.mc")
    loaded = multicause.load(tmp_path / "model.mc")
    np.testing.assert_array_equal(loaded.impute(gaps), model.impute(gaps))
    np.testing.assert_array_equal(loaded.partial_fit(gaps).components_, model.partial_fit(gaps).components_)


def test_blocks_do_not_matter(configuration):
    model, X = fitted(configuration, 0, max_iter=8)
    fixed = model.posterior_.bytes_of_states(CAUSES, X.shape[1], X.itemsize)
    per_row = model.posterior_.bytes_per_row(CAUSES, X.shape[1], X.itemsize)
    small = Local(memory_budget=fixed + 7 * (per_row + model.posterior_.bytes_of_mask(CAUSES, X.shape[1], X.itemsize)))
    blocks = configuration.make(engine=small).fit(X)
    np.testing.assert_allclose(blocks.components_, model.components_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(blocks.impute(X), model.impute(X), atol=1e-8)
