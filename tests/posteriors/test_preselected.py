"""Expectation Truncation: states, weights and statistics against loops over states."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from multicause import LinearCauses, MaximalCauses, NonnegativeCauses
from multicause.arrays import double_precision
from multicause.datasets import make_bars
from multicause.em.e_step import expect_one
from multicause.metrics import approximation_quality
from multicause.posteriors import Exact, Preselected
from multicause.records import Block
from tests.oracles import enumeration as oracle
from tests.posteriors.conftest import D, H

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def states_considered(model, X, combination, noise, candidates, max_active, singletons):
    """K_n of ET10 eq. 7 by loops: a mask (N, 2^H), and the log-joint of all states."""
    W, sigma = model.components_, None if model.noise_variance_ is None else np.sqrt(model.noise_variance_)
    table = oracle.log_joint(X, W, model.activity_, combination, noise, sigma)
    states = oracle.all_states(H)
    scores = np.array([[w @ y / np.linalg.norm(w) for w in W] for y in X])
    mask = np.zeros(table.shape, dtype=bool)
    for n in range(len(X)):
        chosen = set(np.argsort(-scores[n])[:candidates])
        for k, s in enumerate(states):
            active = set(np.flatnonzero(s))
            mask[n, k] = (len(active) <= max_active and active <= chosen) or (singletons and len(active) == 1)
    return mask, table, states


@partial(jax.jit, static_argnums=0)
def all_of(model, block, parameters, temperature):
    """Evidence, means and best states of all rows at temperature one, and statistics at another."""
    inference = model.posterior.infer(model, parameters, block, jnp.ones(()))
    found = inference.log_evidence, inference.mean_causes, inference.mean_data(), inference.recognize(2)
    return *found, expect_one(model, block, parameters, temperature)


@pytest.mark.parametrize(
    ("candidates", "max_active", "singletons", "temperature"),
    [(4, 3, True, 2.5), (H, 3, True, 1.3), (3, 2, True, 1.0), (3, 2, False, 1.7), (1, 1, False, 1.0)],
)
def test_moments_and_statistics_are_sums_over_the_states_considered(
    case, candidates, max_active, singletons, temperature, seed
):
    fit, X, combination, noise = case
    posterior = Preselected(candidates, max_active, singletons=singletons, keep=None, selection="scalar_product")
    fitted = fit(Exact())
    weights = np.random.RandomState(seed).uniform(0.5, 2, len(X))
    with double_precision():
        model = replace(fitted._model, posterior=posterior.bind(fitted._model, H, D, len(X)))
        rows = jnp.asarray(X)
        block = Block(rows, jnp.asarray(weights), model.noise.summarize(rows))
        given = model, block, fitted._parameters, jnp.asarray(temperature)
        evidence, causes, data, best, found = jax.device_get(all_of(*given))
    mask, table, states = states_considered(fitted, X, combination, noise, candidates, max_active, singletons)
    truncated = np.where(mask, table, -np.inf)
    np.testing.assert_allclose(evidence, oracle.log_evidence(truncated), rtol=1e-9)
    q = oracle.posterior(truncated)
    means = np.array([oracle.mean(s, fitted.components_, combination) for s in states])
    np.testing.assert_allclose(causes, q @ states, atol=1e-8)
    np.testing.assert_allclose(data, q @ means, atol=1e-8)
    np.testing.assert_allclose(best.probabilities, -np.sort(-q, axis=1)[:, :2], atol=1e-8)
    for n in range(len(X)):
        if q[n].max() > np.sort(q[n])[-2] + 1e-6:
            np.testing.assert_array_equal(best.states[n, 0], states[q[n].argmax()])
    q = oracle.posterior(truncated, temperature)
    sigma = None if fitted.noise_variance_ is None else np.sqrt(fitted.noise_variance_)
    settings = combination, max(temperature, 1.02), weights, oracle.variance_of(noise, sigma)
    expected = oracle.expectations(X, fitted.components_, q, *settings)
    bound = np.sum(q * np.where(mask, table, 0) - q * np.log(np.where(q > 0, q, 1)), axis=1)
    np.testing.assert_allclose(found.bound, weights @ bound, rtol=1e-9)
    for record in (found.components, found.prior, found.noise):
        assert record.keys() <= expected.keys()
        for name in record:
            scale = np.abs(expected[name]).max()
            np.testing.assert_allclose(record[name], expected[name], rtol=1e-8, atol=1e-8 * scale)


@pytest.mark.parametrize("case", ["maximal-poisson", "linear"], indirect=True)
def test_methods_of_an_estimator_use_its_candidates(case):
    """What is inferred is compared with enumeration above; here, that the estimator returns it."""
    fit, X, _, _ = case
    model = fit(Preselected(3, 2, keep=None, selection="scalar_product"))
    with double_precision():
        rows = jnp.asarray(X)
        block = Block(rows, jnp.ones(len(X)), model._model.noise.summarize(rows))
        evidence, causes, data, best, _ = all_of(model._model, block, model._parameters, jnp.ones(()))
    np.testing.assert_allclose(model.score_samples(X), evidence, rtol=1e-10)
    np.testing.assert_allclose(model.transform(X), causes, atol=1e-10)
    np.testing.assert_allclose(model.reconstruct(X), data, atol=1e-10)
    np.testing.assert_allclose(model.recognize(X, top=2).probabilities, best.probabilities, atol=1e-10)


def test_every_state_admitted_is_exact(case):
    fit, X, _, _ = case
    exact, truncated = fit(Exact(), max_iter=6), fit(Preselected(H, H, keep=None), max_iter=6)
    np.testing.assert_allclose(truncated.components_, exact.components_, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(truncated.lower_bounds_, exact.lower_bounds_, rtol=1e-9)
    np.testing.assert_allclose(truncated.activity_, exact.activity_, rtol=1e-7)
    np.testing.assert_allclose(approximation_quality(truncated, X), 1, atol=1e-9)


def test_bound_never_exceeds_the_likelihood(case):
    fit, X, _, _ = case
    model = fit(Preselected(3, 2, keep=None))
    quality = approximation_quality(model, X)
    assert ((quality > 0) & (quality <= 1)).all()
    assert quality.min() < 1 - 1e-6
    richer = approximation_quality(model, X, reference=Preselected(4, 3))
    assert (richer >= quality - 1e-12).all()


def test_states_listed_are_those_considered():
    bars = make_bars(50, size=3, noise="gaussian", random_state=0)
    posterior = Preselected(2, 1, singletons=np.bool_(False))
    model = MaximalCauses(6, posterior=posterior, init=bars.causes, annealing=None, max_iter=2).fit(bars.data)
    found = model.recognize(bars.data, top=None)
    assert found.states.shape == (50, 3, 6)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("posterior", "text"),
    [
        (Preselected(3, 4), "max_active <= candidates"),
        (Preselected(11, 3), "candidates=11 causes out of n_components=10"),
        (Preselected(0, 3), "candidates of Preselected must be a whole number"),
        (Preselected(5, 2.5), "max_active of Preselected must be a whole number"),
        (Preselected(5, 3, keep=0.0), r"keep of Preselected must lie in \(0, 1\]"),
        (Preselected(5, 3, keep=1.5), r"keep of Preselected must lie in \(0, 1\]"),
        (Preselected(5, 3, singletons="yes"), "singletons"),
        (Preselected(5, 3, selection="best"), "Unknown selection 'best'"),
        (Preselected(5, 3, selection="upper_bound"), "not negative"),
        (Preselected(max_active=20), "max_active=20 active causes, more than"),
    ],
)
def test_impossible_settings_are_refused(posterior, text):
    X = make_bars(50, noise="gaussian", random_state=0).data
    with pytest.raises(ValueError, match=text):
        LinearCauses(10, posterior=posterior, max_iter=2).fit(X)


def test_too_many_states_of_candidates_are_refused():
    X = make_bars(50, noise="gaussian", random_state=0).data
    with pytest.raises(ValueError, match=r"1,048,555 states.*Lower max_active"):
        MaximalCauses(20, posterior=Preselected(20, 20)).fit(X)


@pytest.mark.parametrize(
    ("estimator", "n_components", "n_rows", "candidates"),
    [
        (MaximalCauses, 11, 500, 11),
        (MaximalCauses, 12, 100_000, 5),
        (MaximalCauses, 40, 500, 8),
        (LinearCauses, 12, 500, 9),
    ],
)
def test_all_causes_are_candidates_where_their_sparse_states_are_cheap(estimator, n_components, n_rows, candidates):
    model = estimator(n_components)._parts()
    posterior = Preselected(keep=None).bind(model, n_components, 25, n_rows)
    assert posterior.candidates == candidates
    assert posterior.shares_states(n_components) == (candidates == n_components)


@pytest.mark.parametrize("size", [6, 7, 8])
def test_by_default_a_row_of_seven_causes_has_at_least_the_evidence_of_their_state(size):
    bars = make_bars(100, size=size, noise="poisson", random_state=0)
    model = MaximalCauses(2 * size, noise="poisson", init=bars.causes + 0.01, annealing=None, max_iter=1).fit(bars.data)
    state = np.isin(np.arange(2 * size), [0, 2, 4, 5, 7, 9, 11])
    means = model.components_[state].max(axis=0)
    row = np.rint(means)
    prior = np.where(state, np.log(model.activity_), np.log1p(-model.activity_)).sum()
    joint = stats.poisson.logpmf(row, means).sum() + prior
    assert model.score_samples(row[None])[0] >= joint - 1e-3  # means of zero count as tiny ones


def test_a_cause_that_dies_is_named_and_nothing_is_nan():
    X = np.zeros((40, 6))
    X[:, 0] = np.tile([0.0, 5.0], 20)
    model = NonnegativeCauses(12, posterior=Preselected(4, 2), random_state=0).fit(X)
    assert np.isfinite(model.components_).all()
    assert model.outcome_ == "cause_died"
    bars = make_bars(100, size=3, noise="gaussian", random_state=0)
    for max_iter in (2, 300):
        blank = NonnegativeCauses(
            6,
            init=np.vstack([np.zeros(9), bars.causes[:5]]),
            update="multiplicative",
            annealing=None,
            max_iter=max_iter,
        ).fit(bars.data)
        assert blank.outcome_ == "cause_died"
        assert blank.converged_ == (max_iter == 300)
