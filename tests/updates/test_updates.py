"""Updates: which parts they serve, and what their steps are, against oracles and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import nnls

from multicause import LinearCauses
from multicause.arrays import double_precision
from multicause.combinations import Combination, Maximum, Sum
from multicause.em.e_step import expect_one
from multicause.em.m_step import maximize_one
from multicause.model import Model
from multicause.noises import Bernoulli, Gaussian, Poisson
from multicause.posteriors import Exact
from multicause.priors import Bernoulli as BernoulliPrior
from multicause.records import Block, Parameters
from multicause.updates import (
    Coordinates,
    CreditMean,
    Gradient,
    LeastSquares,
    Multiplicative,
    MultiplicativeCounts,
)
from multicause.wiring import choose_update
from tests.oracles import enumeration as oracle

LEARN_ALL = frozenset({"components", "activity", "noise"})


@pytest.mark.parametrize(
    ("combination", "noise", "expected"),
    [
        (Sum(), Gaussian(), LeastSquares),
        (Sum(nonnegative=True), Gaussian(), Coordinates),
        (Sum(nonnegative=True), Poisson(), MultiplicativeCounts),
        (Sum(nonnegative=True, upper=1.0), Bernoulli(), Gradient),
        (Maximum(), Gaussian(), CreditMean),
        (Maximum(), Poisson(), CreditMean),
        (Maximum(upper=1.0), Bernoulli(), CreditMean),
    ],
)
def test_choice(combination, noise, expected):
    assert type(choose_update(BernoulliPrior(), combination, noise, Exact())) is expected


def test_an_unknown_update_is_refused():
    with pytest.raises(ValueError, match="Unknown update 'newton'. Known: 'coordinates'"):
        choose_update(BernoulliPrior(), Sum(), Gaussian(), Exact(), "newton")


def test_incomplete_part_is_named():
    class Halfway(Sum):
        pull_states = Combination.pull_states
        overlap = Combination.overlap

    with pytest.raises(TypeError, match=r"Halfway must implement overlap, pull_states, as Sum asks"):
        LinearCauses(2, combination=Halfway()).fit(np.eye(4))


def one_step(combination, noise, update, W, Y, sigma=None):
    """Statistics and new parameters of one EM step from W with π = 0.3."""
    model = Model(BernoulliPrior(), combination, noise, Exact(), update, LEARN_ALL)
    with double_precision():
        scale = {} if sigma is None else {"variance": jnp.asarray(sigma**2), "floor": jnp.asarray(1e-9)}
        old = Parameters(jnp.asarray(W), {"activity": jnp.full(len(W), 0.3)}, scale)
        block = Block(jnp.asarray(Y), jnp.ones(len(Y)), noise.summarize(jnp.asarray(Y)))
        sums = jax.jit(expect_one, static_argnums=0)(model, block, old, jnp.asarray(1.0))
        return jax.device_get(sums), jax.device_get(maximize_one(model, sums, old))


def expected_log_likelihood(W, q, Y, combination, noise, sigma=None):
    """Q(W) = Σ_n Σ_s q_n(s) log p(y_n | s, W), by loops."""
    total = 0.0
    for k, s in enumerate(oracle.all_states(len(W))):
        w = oracle.mean(s, W, combination)
        total += sum(q[n, k] * oracle.log_likelihood(y, w, noise, sigma) for n, y in enumerate(Y))
    return total


@pytest.mark.parametrize(
    ("combination", "part"), [("max", Maximum(least_temperature=1.0)), ("sum", Sum(nonnegative=True))]
)
@pytest.mark.parametrize(("noise", "sigma"), [("poisson", None), ("gaussian", 1.3)])
def test_gradient_against_finite_differences(combination, part, noise, sigma, seed):
    random = np.random.RandomState(seed)
    W, Y = random.uniform(1, 5, (3, 4)), random.poisson(3, (6, 4)).astype(float)
    sums, _ = one_step(part, Poisson() if noise == "poisson" else Gaussian(), Gradient(), W, Y, sigma)
    gradient = sums.components["target"] - sums.components["curvature"] * W
    q = oracle.posterior(oracle.log_joint(Y, W, [0.3] * 3, combination, noise, sigma))
    step = 1e-6
    for h, d in np.ndindex(W.shape):
        up, down = W.copy(), W.copy()
        up[h, d] += step
        down[h, d] -= step
        slope = [expected_log_likelihood(V, q, Y, combination, noise, sigma) for V in (up, down)]
        assert gradient[h, d] == pytest.approx((slope[0] - slope[1]) / (2 * step), abs=1e-5)


def test_least_squares_maximizes(seed):
    """The new W is the solution of the normal equations of all (state, row) pairs weighted by q."""
    random = np.random.RandomState(seed)
    W, Y = random.normal(0, 3, (3, 4)), random.normal(0, 3, (8, 4))
    _, new = one_step(Sum(), Gaussian(), LeastSquares(), W, Y, 1.5)
    q = oracle.posterior(oracle.log_joint(Y, W, [0.3] * 3, "sum", "gaussian", 1.5))
    states = oracle.all_states(3)
    root = np.sqrt(q).T.reshape(-1, 1)
    design, target = np.repeat(states, len(Y), axis=0) * root, np.tile(Y, (len(states), 1)) * root
    np.testing.assert_allclose(new.components, np.linalg.lstsq(design, target, rcond=None)[0], rtol=1e-8, atol=1e-9)


def test_multiplicative_steps_approach_nonnegative_least_squares(seed):
    random = np.random.RandomState(seed)
    W, Y = random.uniform(0.5, 3, (3, 4)), random.normal(1, 2, (12, 4))
    _, new = one_step(Sum(nonnegative=True), Gaussian(), Multiplicative(n_steps=5000), W, Y, 1.5)
    q = oracle.posterior(oracle.log_joint(Y, W, [0.3] * 3, "sum", "gaussian", 1.5))
    root = np.sqrt(q).T.reshape(-1, 1)
    design = np.repeat(oracle.all_states(3), len(Y), axis=0) * root
    target = np.tile(Y, (8, 1)) * root
    expected = np.column_stack([nnls(design, target[:, d])[0] for d in range(4)])
    np.testing.assert_allclose(new.components, expected, atol=5e-3)
    assert (new.components >= 0).all()


def test_counts_step_raises_the_expected_log_likelihood(seed):
    random = np.random.RandomState(seed)
    W, Y = random.uniform(0.5, 3, (3, 4)), random.poisson(3, (12, 4)).astype(float)
    _, new = one_step(Sum(nonnegative=True), Poisson(), MultiplicativeCounts(), W, Y)
    q = oracle.posterior(oracle.log_joint(Y, W, [0.3] * 3, "sum", "poisson"))
    before, after = (expected_log_likelihood(V, q, Y, "sum", "poisson") for V in (W, new.components))
    assert after > before


def test_dead_and_duplicate_causes_leave_no_nan():
    """Two equal causes make Σ⟨ssᵀ⟩ nearly singular, and a far-away one is never used."""
    random = np.random.RandomState(0)
    Y = random.normal(0, 1, (30, 5)) + 5 * (random.uniform(size=(30, 1)) < 0.5)
    W = np.stack([np.full(5, 5.0), np.full(5, 5.0), np.full(5, 1e6)])
    with pytest.warns(UserWarning, match="cause_died"):
        model = LinearCauses(3, init=W, annealing=None, random_state=0).fit(Y)
    assert np.isfinite(model.components_).all()
    assert model.outcome_ == "cause_died"
