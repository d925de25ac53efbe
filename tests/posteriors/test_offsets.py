"""Data far from zero: likelihoods, statistics and fits must not depend on an offset that the model can represent."""

import warnings
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multicause import FactorAnalysis, LinearCauses, MaximalCauses, NonnegativeCauses
from multicause.arrays import double_precision
from multicause.combinations import Maximum
from multicause.em.e_step import expect_one
from multicause.engines import Local
from multicause.posteriors import Exact, Preselected, Truncated
from multicause.posteriors.expectations.expansion import split_products
from multicause.records import Block, Parameters

pytestmark = pytest.mark.filterwarnings("ignore:outcome_:sklearn.exceptions.ConvergenceWarning")

H, D, N = 5, 9, 40
# What is asked for: offsets in standard deviations of the noise, which is one here.
FAR = [(np.float32, 1e4), (np.float64, 1e6)]
POSTERIORS = [Exact(), Preselected(H, H, keep=None), Preselected(4, 3, keep=None), Truncated(3)]


def components(kind, offset):
    """Components of which one, each of two, or two together carry the offset."""
    random = np.random.RandomState(0)
    W = np.abs(random.normal(0, 3, (H, D)))
    if kind == "maximum":
        W += offset
        W[0] = offset
    elif kind == "one carries":
        W[0] = offset
    elif kind == "either carries":
        W[0] += offset
        W[1] += offset
    else:  # shares that differ between dimensions
        share = random.uniform(0.2, 0.8, D)
        W[0], W[1] = share * offset, (1 - share) * offset
    return W


def far_problem(kind, offset, dtype):
    """Components, activities, and rows of whose states most are around the offset."""
    random, W = np.random.RandomState(1), components(kind, offset)
    S = random.uniform(size=(N, H)) < 0.4
    S[:, 0] = True
    S[:, 1] = (random.uniform(size=N) < 0.4) if kind in ("maximum", "one carries") else kind == "two share"
    if kind == "either carries":
        S[: N // 2, 0], S[: N // 2, 1] = False, True
    means = (S[:, :, None] * W).max(axis=1) if kind == "maximum" else S @ W
    return W.astype(dtype), np.where(S.mean(axis=0) == 1, 0.98, 0.4), (means + random.normal(size=(N, D))).astype(dtype)


def mean_of(state, W, rule):
    """Sum or maximum of the active components, in extended precision."""
    if not state.any():
        return np.zeros(D, np.longdouble)
    active = W[state].astype(np.longdouble)
    return active.max(axis=0) if rule == "max" else active.sum(axis=0)


def log_joint(X, W, activity, rule):
    """log p(s, y) of all states for noise of variance one, by differences in extended precision: (N, S)."""
    activity = np.asarray(activity, np.longdouble)
    states = np.array(list(product((0, 1), repeat=H)), dtype=bool)
    columns = []
    for s in states:
        prior = np.where(s, np.log(activity), np.log1p(-activity)).sum()
        squares = (X.astype(np.longdouble) - mean_of(s, W, rule)) ** 2
        columns.append(-0.5 * (squares + np.log(2 * np.pi)).sum(axis=1) + prior)
    return np.stack(columns, axis=1), states


CASES = [
    (MaximalCauses, "maximum"),
    (LinearCauses, "one carries"),
    (LinearCauses, "either carries"),
    (LinearCauses, "two share"),
    (NonnegativeCauses, "two share"),
]


@partial(jax.jit, static_argnums=0)
def inferred(model, block, parameters, temperature):
    """Evidence and listed states of all rows at temperature one, and statistics at another."""
    inference = model.posterior.infer(model, parameters, block, jnp.ones(()))
    recognized = inference.recognize(model.posterior.n_states(H))
    return inference.log_evidence, recognized.states, expect_one(model, block, parameters, temperature)


def infer(estimator, kind, posterior, offset, dtype, temperature=1.0):
    """The same for a far problem, with what the oracle needs to know."""
    W, activity, X = far_problem(kind, offset, dtype)
    with double_precision():
        model = estimator(H, posterior=posterior)._wire(Local().load(X))
        noise = {"variance": 1.0, "floor": 1e-6, "origin": X.mean(axis=0, dtype=float)}
        records = (W, {"activity": activity}, noise, model.posterior.initialize())
        parameters = Parameters(*jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), records))
        block = Block(jnp.asarray(X), jnp.ones(N, dtype), jnp.zeros(N, dtype))
        found = jax.device_get(inferred(model, block, parameters, jnp.asarray(temperature)))
    table, states = log_joint(X, W, activity.astype(dtype), "max" if kind == "maximum" else "sum")
    considered = (found[1][:, :, None] == states.astype(np.int8)).all(axis=3).any(axis=1)
    return X, W, found, np.where(considered, table, -np.inf), states


@pytest.mark.parametrize(("dtype", "offset"), FAR)
@pytest.mark.parametrize("posterior", POSTERIORS, ids=["exact", "all candidates", "few candidates", "truncated"])
@pytest.mark.parametrize(("estimator", "kind"), CASES)
def test_evidence_is_that_of_enumeration(estimator, kind, posterior, dtype, offset):
    """To 1e-3 in every row; squares expanded around zero leave errors of ten and more in single precision."""
    _, _, (evidence, _, statistics), table, _ = infer(estimator, kind, posterior, offset, dtype)
    largest = table.max(axis=1, keepdims=True)
    expected = (np.log(np.exp(table - largest).sum(axis=1)) + largest[:, 0]).astype(float)
    assert -60 < np.median(expected) < 0
    np.testing.assert_allclose(evidence, expected, atol=1e-3, rtol=1e-6)
    assert statistics.bound / N == pytest.approx(expected.mean(), abs=1e-3, rel=1e-6)


@pytest.mark.parametrize(("dtype", "offset"), FAR)
@pytest.mark.parametrize("posterior", POSTERIORS[:2], ids=["exact", "all candidates"])
@pytest.mark.parametrize(("estimator", "kind"), CASES)
def test_statistics_are_those_of_enumeration(estimator, kind, posterior, dtype, offset):
    """Squared residuals, bound and free energy at a temperature, and the gradient Σ⟨s (y − w̄)⟩ of a sum."""
    temperature = 1.6
    X, W, (_, _, found), table, states = infer(estimator, kind, posterior, offset, dtype, temperature)
    scaled = table / temperature
    q = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    entropy = -(q * np.log(np.where(q > 0, q, 1))).sum(axis=1)
    expected_joint = (q * np.where(q > 0, table, 0)).sum(axis=1)
    assert found.bound / N == pytest.approx(float((expected_joint + entropy).mean()), abs=1e-3)
    assert found.free_energy / N == pytest.approx(float((expected_joint + temperature * entropy).mean()), abs=1e-3)
    means = np.stack([mean_of(s, W, "max" if kind == "maximum" else "sum") for s in states])
    apart = X[:, None, :].astype(np.longdouble) - means
    assert found.noise["residual"] == pytest.approx(float((q[:, :, None] * apart**2).sum()), rel=1e-4)
    if kind != "maximum":
        gradient = np.einsum("ns,sh,nsd->hd", q, states.astype(np.longdouble), apart).astype(float)
        slope = found.components["cause_data"] - found.components["cause_pairs"] @ W.astype(float)
        np.testing.assert_allclose(slope / N, gradient / N, atol=2e-5)


def offset_model(estimator, offset, dtype, **settings):
    """A fit of rows of sums or maxima around an offset, from components near those that made them."""
    random = np.random.RandomState(2)
    causes = np.kron(np.eye(3), np.full(3, 8.0))
    if estimator is MaximalCauses:
        causes[0] += np.roll(causes[0], 2)
        settings |= {"combination": Maximum(least_temperature=1.0)}
    S = random.uniform(size=(200, 3)) < 0.4
    bars = (S[:, :, None] * causes).max(axis=1) if estimator is MaximalCauses else S @ causes
    X = (offset + bars + random.normal(size=(200, D))).astype(dtype)
    start = np.abs(causes + random.normal(0, 1, causes.shape))
    init = np.concatenate([start + (offset if estimator is MaximalCauses else 0), np.full((1, D), offset)])
    settings = {"annealing": None, "max_iter": 60, "tol": 1e-6, "noise_scale": 2.0} | settings
    model = estimator(4, init=init, activity=[0.4, 0.4, 0.4, 1 - 1e-6], **settings).fit(X)
    return model, X


@pytest.mark.parametrize(("dtype", "offset"), FAR)
@pytest.mark.parametrize("posterior", [POSTERIORS[0], Preselected(4, 4, keep=None)], ids=["exact", "preselected"])
@pytest.mark.parametrize("estimator", [LinearCauses, NonnegativeCauses, MaximalCauses])
def test_a_fit_does_not_depend_on_the_offset(estimator, posterior, dtype, offset):
    """Likelihood, noise and components of a fit far away are those of the same data nearby."""
    near, _ = offset_model(estimator, 30.0, np.float64, posterior=posterior)
    far, X = offset_model(estimator, offset, dtype, posterior=posterior)
    assert far.outcome_ == near.outcome_
    assert far.lower_bound_ == pytest.approx(near.lower_bound_, abs=2e-3)
    assert far.score(X) == pytest.approx(far.lower_bound_, abs=1e-3)
    assert far.noise_variance_ == pytest.approx(near.noise_variance_, rel=2e-3)
    moved = offset - 30.0 if estimator is MaximalCauses else np.array([0, 0, 0, offset - 30.0])[:, None]
    shown = near.components_ > 33 if estimator is MaximalCauses else slice(None)  # what is below others does not show
    np.testing.assert_allclose((far.components_.astype(float) - moved)[shown], near.components_[shown], atol=2e-2)


@pytest.mark.parametrize("update", ["multiplicative", "least_squares", "gradient"])
def test_other_updates_do_not_depend_on_the_offset(update):
    settings = {"update": update, "max_iter": 5, "tol": 0.0}
    near, _ = offset_model(NonnegativeCauses, 30.0, np.float64, **settings)
    far, _ = offset_model(NonnegativeCauses, 1e4, np.float32, **settings)
    if update == "multiplicative":  # each step moves a large component less
        assert np.diff(far.lower_bounds_).min() > -1e-3
    else:
        np.testing.assert_allclose(far.lower_bounds_, near.lower_bounds_, atol=2e-3)


def test_dimensions_with_offsets_of_their_own():
    """The smallest variance that is learned is relative to what a dimension varies, not to how dimensions differ."""
    random = np.random.RandomState(0)
    S = random.uniform(size=(300, 2)) < 0.5
    X = S @ np.kron(np.eye(2), np.full(3, 5.0)) + random.normal(size=(300, 6))
    offsets = np.array([0, 1e5, 1e3, -1e5, 10, 3e4])
    init = np.concatenate([np.kron(np.eye(2), np.full(3, 4.0)), offsets[None]])
    settings = {"init": init, "activity": [0.5, 0.5, 1 - 1e-6], "noise_scale": 2.0, "annealing": None}
    model = LinearCauses(3, **settings).fit(X + offsets)
    assert model.noise_variance_ == pytest.approx(1.0, abs=0.1)


def test_sums_of_whole_products_are_exact():
    """The first matrix has no rounding: a sum of vectors that cancel has the square of their small difference."""
    random = np.random.RandomState(0)
    V = random.normal(size=(3, 50)) * 1e7
    V[2] = -V[0] - V[1] + random.normal(size=50)
    with double_precision():
        whole, rest = (np.asarray(part) for part in split_products(jnp.asarray(V), 9))
    expected = float((V.astype(np.longdouble).sum(axis=0) ** 2).sum())
    assert whole.sum() + rest.sum() == pytest.approx(expected, rel=1e-6)
    assert (V @ V.T).sum() != pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 1e6), (np.float64, 1e11)])
@pytest.mark.parametrize("estimator", [LinearCauses(2, max_iter=2), FactorAnalysis(2, max_iter=2)])
def test_lost_digits_are_reported(estimator, dtype, offset):
    X = np.random.RandomState(0).normal(size=(50, 4)) + offset
    remedy = "Subtract the mean of the data" + (", or use float64 data" if dtype == np.float32 else r"\.")
    with pytest.warns(
        UserWarning, match=rf"standard deviations from zero, where {np.dtype(dtype)} has steps.*{remedy}"
    ):
        estimator.fit(X.astype(dtype))
    with pytest.warns(UserWarning, match="standard deviations from zero"):
        LinearCauses(2).partial_fit(X.astype(dtype))


@pytest.mark.parametrize(("dtype", "offset"), [*FAR, (np.float64, 0.0)])
def test_digits_that_suffice_are_not_reported(dtype, offset):
    X = (np.random.RandomState(0).normal(size=(50, 4)) + offset).astype(dtype)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LinearCauses(2, max_iter=2, annealing=None).fit(X)
    assert not any("standard deviations from zero" in str(warning.message) for warning in caught)
