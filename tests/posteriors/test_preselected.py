"""Expectation Truncation: states, weights, data cut and truncated prior against loops over states."""

from dataclasses import replace
from functools import partial
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from multicause import LinearCauses, MaximalCauses, NonnegativeCauses
from multicause.annealing import LinearCooling
from multicause.arrays import double_precision, indices_of_largest
from multicause.datasets import make_bars
from multicause.em.e_step import expect_one, statistics_of
from multicause.engines import Local
from multicause.metrics import approximation_quality
from multicause.model import Block
from multicause.posteriors import Exact, Preselected, UpperBound
from multicause.posteriors.candidates import pieces
from multicause.priors import Bernoulli, truncation
from multicause.states.state_list import sparse_states
from tests.oracles import enumeration as oracle

H, D = 5, 9
CASES = {
    "maximal": (MaximalCauses, "max", "gaussian", {}),
    "maximal-poisson": (MaximalCauses, "max", "poisson", {}),
    "linear": (LinearCauses, "sum", "gaussian", {"combination": "sum"}),
    "linear-poisson": (LinearCauses, "sum", "poisson", {"combination": "sum"}),
    "nonnegative": (NonnegativeCauses, "sum", "gaussian", {"combination": "sum"}),
}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(params=CASES)
def case(request, seed):
    """A model after two iterations, by the given posterior, its data and its words in the oracle."""
    estimator, combination, noise, settings = CASES[request.param]
    X = make_bars(40, size=3, value=6.0, noise=noise, noise_scale=1.0, random_state=seed, **settings).data
    start = np.abs(np.random.RandomState(seed).normal(3, 2, (H, D)))

    def fit(posterior, **changes):
        words = {"noise": noise, "posterior": posterior, "annealing": None, "max_iter": 2, "init": start} | changes
        return estimator(H, random_state=0, **words).fit(X)

    return fit, X, combination, noise


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


@pytest.mark.parametrize("cut", [False, True])
def test_rows_in_pieces_give_the_same(case, cut, monkeypatch, seed):
    fit, X, _, _ = case
    fitted = fit(Preselected(4, 3, keep=None))
    model, parameters = fitted._model, fitted._parameters
    weights = np.random.RandomState(seed).uniform(0.5, 2, len(X))

    def inferred():
        numbers = []

        def results(parameters, block):
            given = (model, parameters, block, jnp.asarray(2.0))
            inference = model.posterior.infer(*given)
            if cut:
                weighed = model.posterior.weigh(*given)
                inference = model.posterior.infer_from(*given, weighed, jnp.median(inference.free_energy))
            numbers.append(inference._pieces.number)
            found = statistics_of(model, parameters, block, inference), inference.mean_causes, inference.mean_data()
            return *found, inference.recognize(3)

        rows = jnp.asarray(X)
        found = jax.jit(results)(parameters, Block(rows, jnp.asarray(weights), model.noise.summarize(rows)))
        return *numbers, found

    with double_precision():
        one, whole = inferred()
        # 40 rows in seven pieces of six, the last one filled up.
        monkeypatch.setattr(pieces, "fastest_block", lambda: 6 * model.posterior.bytes_per_row(H, D, 8, model.linear))
        many, in_pieces = inferred()
    assert (one, many) == (1, 7)
    for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(in_pieces), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_selection_sees_no_rows_but_those_of_the_data(monkeypatch):
    """Cosines have no value for rows of zeros, with which a piece must not be filled up."""
    X = make_bars(41, size=3, random_state=0).data + 1.0

    def fitted(keep):
        def cosine(rows, components):  # another function for every fit, so that all have programs of their own
            return rows / jnp.linalg.norm(rows, axis=1, keepdims=True) @ components.T

        posterior = Preselected(4, 3, keep=keep, selection=cosine)
        return MaximalCauses(6, posterior=posterior, annealing=None, max_iter=35, tol=0.0, random_state=0).fit(X)

    for keep in (None, 0.9):
        with monkeypatch.context() as patch:
            whole = fitted(keep)
            size = 6 * whole._model.posterior.bytes_per_row(6, 9, 8)
            patch.setattr(pieces, "fastest_block", lambda size=size: size)
            in_pieces = fitted(keep)
        assert in_pieces.outcome_ == whole.outcome_ != "non_finite"
        np.testing.assert_allclose(in_pieces.components_, whole.components_, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("n_rows", "rows_in_cache"), [(10, 0.1), (10, 1.4), (41, 6), (1000, 3), (7, 100), (1, 0.5)])
def test_no_piece_is_filling_alone(n_rows, rows_in_cache, monkeypatch):
    monkeypatch.setattr(pieces, "fastest_block", lambda: int(1000 * rows_in_cache))
    found = pieces.Pieces.for_cache(n_rows, 1000)
    assert (found.number - 1) * found.size < n_rows <= found.number * found.size
    rows = jnp.arange(2.0 * n_rows).reshape(n_rows, 2)
    with double_precision():
        np.testing.assert_array_equal(found.join(found.split(rows.T)).T, rows)
        np.testing.assert_array_equal(found.split_rows(rows).reshape(-1, 2)[:n_rows], rows)


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


def test_quality_of_too_many_causes_names_the_way_out():
    X = make_bars(60, noise="gaussian", random_state=0).data
    model = LinearCauses(20, annealing=None, max_iter=1, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"2\^20 states.*reference=Preselected"):
        approximation_quality(model, X)
    assert approximation_quality(model, X, reference=Preselected(12, 6)).shape == (60,)


def test_data_cut_learns_from_the_rows_with_the_highest_evidence(case):
    """One M-step with and without the other rows: the cut is the same as a weight of zero."""
    fit, X, _, _ = case
    kwargs = {"annealing": LinearCooling(1.0, n_iter=1, hold=0.0, settle=0.0), "max_iter": 2, "tol": 0.0}
    kwargs |= {"learn": ("components", "noise"), "activity": 0.3}
    posterior = Preselected(3, 2, keep=0.8)
    cut = fit(posterior, **kwargs)
    first = fit(posterior, **(kwargs | {"max_iter": 1}))  # all rows: the schedule's only iteration has no cut
    evidence = first.score_samples(X)
    share = 0.8 * stats.binom.cdf(2, H, 0.3)
    kept = evidence >= np.sort(evidence)[::-1][int(np.ceil(share * len(X))) - 1]
    assert 5 < kept.sum() < len(X) - 5
    estimator = type(cut)(
        **(cut.get_params(deep=False) | {"annealing": None, "max_iter": 1, "init": first.components_})
    )
    estimator.set_params(posterior=Preselected(3, 2, keep=None), **_scale(first))
    once = estimator.fit(X, sample_weight=kept.astype(float))
    np.testing.assert_allclose(cut.components_, once.components_, rtol=1e-7, atol=1e-8)


def _scale(model):
    return {} if model.noise_variance_ is None else {"noise_scale": float(np.sqrt(model.noise_variance_))}


def test_cut_rows_do_not_depend_on_blocks_and_weights_are_repetitions(seed, optimized):
    # Without optimization, programs of one block and of several round differently, which decides about the last row.
    bars = make_bars(60, size=3, noise="gaussian", noise_scale=1.0, random_state=seed)
    start = np.abs(np.random.RandomState(seed).normal(3, 2, (6, 9)))
    words = {"posterior": Preselected(4, 2), "annealing": LinearCooling(3.0, n_iter=12), "init": start, "max_iter": 15}
    whole = MaximalCauses(6, **words).fit(bars.data)
    per_row = whole.posterior_.bytes_per_row(6, 9, 8)
    budget = whole.posterior_.bytes_of_states(6, 9, 8) + 7 * per_row
    parts = MaximalCauses(6, engine=Local(memory_budget=budget), **words).fit(bars.data)
    np.testing.assert_allclose(parts.components_, whole.components_, rtol=1e-7, atol=1e-8)
    counts = np.random.RandomState(seed).randint(0, 3, 60)
    weighted = MaximalCauses(6, **words).fit(bars.data, sample_weight=counts)
    repeated = MaximalCauses(6, **words).fit(np.repeat(bars.data, counts, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("max_active", [1, 2, 4])
def test_truncated_prior_by_enumeration(max_active, seed):
    activity = np.random.RandomState(seed).uniform(0.05, 0.4, H)
    states = oracle.all_states(H)
    p = np.prod(np.where(states, activity, 1 - activity), axis=1) * (states.sum(axis=1) <= max_active)
    means = p @ states / p.sum()
    with double_precision():
        assert float(truncation.log_mass(activity, max_active)) == pytest.approx(np.log(p.sum()), rel=1e-12)
        found = truncation.untruncated(np.asarray(means), np.full(H, 0.2), max_active)
        once = found
        step = jax.jit(truncation.untruncated, static_argnums=2)
        for _ in range(20):
            found = step(np.asarray(means), found, max_active)
    np.testing.assert_allclose(once, activity, rtol=0.05)  # what one M-step does
    np.testing.assert_allclose(found, activity, rtol=1e-4)


def test_activity_is_corrected_for_rows_that_were_cut():
    """With γ = 2 of 8 causes, one row in three is left out; π must still come out right.

    Standard error of the mean activity over 2000 rows and 8 causes is 0.003; 5 of them, false alarm below 1e-5.
    """
    bars = make_bars(2000, size=4, activity=0.25, noise="gaussian", noise_scale=0.5, random_state=0)
    posterior = Preselected(8, 2, keep=1.0)
    model = MaximalCauses(8, posterior=posterior, annealing=None, init=bars.causes, random_state=0, noise_scale=0.5)
    model.fit(bars.data)
    assert abs(model.activity_.mean() - bars.states.mean()) < 0.015
    shared = MaximalCauses(**(model.get_params(deep=False) | {"prior": Bernoulli(shared=True)})).fit(bars.data)
    assert np.ptp(shared.activity_) == 0
    assert abs(shared.activity_[0] - bars.states.mean()) < 0.015
    explained = model.is_explained(bars.data)
    few = bars.states.sum(axis=1) <= 2
    assert explained[few].mean() > 0.95
    assert explained[~few].mean() < 0.1


def test_rows_that_all_have_as_many_causes_as_allowed_do_not_run_away():
    """Nothing then says how many rows with more causes there are; learning says so and keeps the causes."""
    causes = make_bars(2, size=4).causes
    random = np.random.RandomState(0)
    states = np.zeros((400, 8))
    for row in states:
        row[random.choice(8, 2, replace=False)] = 1
    X = (states[:, :, None] * causes).max(axis=1) + random.normal(0, 1, (400, 16))
    model = MaximalCauses(8, posterior=Preselected(5, 2), init=causes, annealing=None, noise_scale=1.0)
    with pytest.warns(ConvergenceWarning, match="Raise max_active"):
        model.fit(X)
    assert model.outcome_ == "converged"
    assert np.abs(model.components_ - causes).mean() < 0.3
    assert model.activity_.sum() == pytest.approx(3, rel=1e-3)


def test_batches_after_a_fit_with_a_cut_change_nothing_on_the_same_data():
    bars = make_bars(600, size=4, activity=0.3, noise="gaussian", noise_scale=0.5, random_state=0)
    model = MaximalCauses(8, posterior=Preselected(8, 2), annealing=None, init=bars.causes, noise_scale=0.5)
    model.fit(bars.data)
    before = model.activity_, model.noise_variance_, model.is_explained(bars.data)
    for _ in range(5):
        model.partial_fit(bars.data)
    np.testing.assert_allclose(model.activity_, before[0], rtol=0.03)
    assert model.noise_variance_ == pytest.approx(before[1], rel=0.03)
    assert (model.is_explained(bars.data) == before[2]).mean() > 0.97
    alone = MaximalCauses(8, posterior=Preselected(8, 2), init=bars.causes, noise_scale=0.5).partial_fit(bars.data)
    assert 0.3 < alone.is_explained(bars.data).mean() < 1


def test_weights_that_exceed_the_memory_budget_are_computed_twice():
    bars = make_bars(600, size=4, noise="gaussian", random_state=0)
    words = {"posterior": Preselected(5, 2), "annealing": None, "init": bars.causes, "max_iter": 5}
    rich, poor = (MaximalCauses(8, engine=Local(memory_budget=b), **words).fit(bars.data) for b in ("1GiB", "60KiB"))
    np.testing.assert_allclose(rich.components_, poor.components_, rtol=1e-9)


def test_a_poorer_reference_of_quality_is_refused():
    bars = make_bars(50, size=3, noise="gaussian", random_state=0)
    model = MaximalCauses(6, posterior=Preselected(4, 2), init=bars.causes, annealing=None, max_iter=2).fit(bars.data)
    with pytest.raises(ValueError, match="finds less evidence"):
        approximation_quality(model, bars.data, reference=Preselected(2, 1))
    np.testing.assert_array_equal(
        approximation_quality(model, bars.data, reference="exact"), approximation_quality(model, bars.data)
    )


def test_states_listed_are_those_considered():
    bars = make_bars(50, size=3, noise="gaussian", random_state=0)
    posterior = Preselected(2, 1, singletons=np.bool_(False))
    model = MaximalCauses(6, posterior=posterior, init=bars.causes, annealing=None, max_iter=2).fit(bars.data)
    found = model.recognize(bars.data, top=None)
    assert found.states.shape == (50, 3, 6)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=1e-12)


def test_upper_bound_bounds_the_joint(seed):
    """ET10 eq. 28: log S_h(y) ≥ log p(s_h = 1, y) for every cause and row."""
    for noise in ("gaussian", "poisson"):
        X = make_bars(30, size=3, value=6.0, noise=noise, noise_scale=1.0, random_state=seed).data
        model = MaximalCauses(H, noise=noise, posterior=Preselected(3, 2, selection="upper_bound"), random_state=0)
        model.set_params(annealing=None, max_iter=2).fit(X)
        with double_precision():
            scores = np.asarray(UpperBound().scores(model._model, model._parameters, X, None))
        sigma = None if noise == "poisson" else np.sqrt(model.noise_variance_)
        peak = [oracle.log_likelihood(y, np.maximum(y, 1e-6) if noise == "poisson" else y, noise, sigma) for y in X]
        table = oracle.log_joint(X, model.components_, model.activity_, "max", noise, sigma)
        states = oracle.all_states(H)
        for h in range(H):
            joint = oracle.log_evidence(np.where(states[:, h] > 0, table, -np.inf))
            assert (scores[h] + peak >= joint - 1e-6).all()


def test_a_users_selection_is_used_and_checked():
    X = make_bars(60, noise="gaussian", random_state=0).data
    words = {"annealing": None, "max_iter": 2, "random_state": 0}

    def last(rows, components):
        return np.arange(components.shape[0]) + 0 * rows[:, :1]

    model = LinearCauses(6, posterior=Preselected(2, 2, singletons=False, selection=last, keep=None), **words).fit(X)
    assert (model.transform(X)[:, :4] == 0).all()
    assert (model.transform(X)[:, 4:] > 0).any()
    for wrong, text in (
        (lambda rows, components: rows, r"shape \(60, 6\).*got \(60, 25\)"),
        (lambda rows, components: rows @ components.T * np.nan, "NaN"),
        (lambda rows: rows, "rows and components"),
        (lambda rows, components: np.asarray(rows) @ np.asarray(components).T, r"written with jax\.numpy"),
    ):
        for learn in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match=text):
                getattr(LinearCauses(6, posterior=Preselected(2, 2, selection=wrong), **words), learn)(X)

    def nan_for_some(rows, components):
        return jnp.where(rows[:, :1] > np.sort(X[:, 0])[-2], jnp.nan, rows @ components.T)

    order = np.argsort(X[:, 0])
    late = LinearCauses(6, posterior=Preselected(2, 2, selection=nan_for_some), **words)
    late.fit(np.concatenate([X[order[:-1]], X[order[:10]], X[order[-1:]]]))
    assert late.outcome_ == "non_finite"
    assert np.isfinite(late.components_).all()


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


def test_all_pairs_of_candidates_appear_once():
    states = sparse_states(6, 3).states()
    expected = {c for k in range(4) for c in combinations(range(6), k)}
    assert {tuple(np.flatnonzero(s)) for s in states} == expected
    assert len(states) == len(expected)
    assert (np.diff(states.sum(axis=1)) >= 0).all()


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


@pytest.mark.parametrize("k", [1, 4])
def test_the_largest_scores_of_any_size(k, seed):
    """Ranks by NumPy; scores may be close to each other far from zero, and some may be minus infinity."""
    random = np.random.RandomState(seed)
    scores = random.normal(size=(12, 40))
    cases = [scores * scale for scale in (1.0, 1e-300, 1e-45, 1e39, 1e300)]
    cases += [scores - 1e9, np.where(scores < 1, -np.inf, scores * 1e60), np.round(scores), np.zeros((12, 40))]
    with double_precision():
        for case in cases:
            found = indices_of_largest(jnp.asarray(case), k)
            np.testing.assert_array_equal(found, np.argsort(-case, axis=0, kind="stable")[:k])


@pytest.mark.parametrize("case", ["maximal", "linear"])
def test_a_component_of_zeros_is_no_candidate(case):
    """Rounding errors of its scalar products, divided by its length, must not decide which causes are candidates."""
    estimator, combination = CASES[case][0], CASES[case][1]
    bars = make_bars(60, size=3, combination=combination, noise="gaussian", noise_scale=1.0, random_state=0)

    def score(components):
        settings = {"posterior": Preselected(4, 3, keep=None), "learn": ("noise",), "annealing": None, "max_iter": 1}
        model = estimator(len(components), init=components, activity=0.3, noise_scale=1.0, **settings)
        return model.fit(bars.data).score_samples(bars.data)

    # The state in which only the additional cause is active is all that it adds, with the mean of the empty state.
    without = score(bars.causes)
    found = score(np.concatenate([bars.causes, np.zeros((1, 9))])) - without
    assert (found >= np.log(0.7) - 0.02).all()
    assert (found <= 0.02).all()


def test_candidates_do_not_depend_on_the_scale_of_data():
    X = make_bars(60, size=3, value=6.0, noise="gaussian", noise_scale=1.0, random_state=0).data
    start = np.abs(np.random.RandomState(0).normal(3, 2, (H, D)))

    def fit(scale):
        settings = {"posterior": Preselected(3, 2, keep=None), "annealing": None, "max_iter": 5, "random_state": 0}
        return LinearCauses(H, init=start * scale, **settings).fit(X * scale)

    expected = fit(1.0)
    for scale in (1e-60, 1e60):
        found = fit(scale)
        np.testing.assert_allclose(found.components_ / scale, expected.components_, rtol=1e-8, atol=1e-10)
        assert found.outcome_ == expected.outcome_


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
