"""Cases small enough to be worked out on paper."""

import numpy as np
import pytest

from multicause import LinearCauses, MaximalCauses

PLAIN = {"annealing": None, "max_iter": 1, "tol": 0.0, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_one_cause_two_rows_poisson():
    """H = D = 1, W = 2, π = ½, rows 0 and 2.

    p(0) = ½ e^{−f} + ½ e^{−2} with the floor f = 1e-6, and p(2) = ½ f²/2 e^{−f} + ½ · 2 e^{−2}.
    """
    model = MaximalCauses(1, noise="poisson", activity=0.5, init=[[2.0]], learn=(), **PLAIN).fit([[0.0], [2.0]])
    f = 1e-6
    evidence = np.log([0.5 * np.exp(-f) + 0.5 * np.exp(-2), 0.25 * f**2 * np.exp(-f) + np.exp(-2)])
    np.testing.assert_allclose(model.score_samples([[0.0], [2.0]]), evidence, rtol=1e-12)
    on = np.exp(-2) / (np.exp(-f) + np.exp(-2))
    np.testing.assert_allclose(model.transform([[0.0], [2.0]])[:, 0], [on, 1.0], rtol=1e-9)


def test_one_step_of_em_poisson():
    """The same model after one M-step: W = Σ⟨s⟩y / Σ⟨s⟩ and π = Σ⟨s⟩/N, with ⟨s⟩ = e^{−2}/(1 + e^{−2}) and 1."""
    model = MaximalCauses(1, noise="poisson", activity=0.5, init=[[2.0]], **PLAIN).fit([[0.0], [2.0]])
    on = np.exp(-2) / (np.exp(-1e-6) + np.exp(-2))
    assert model.components_[0, 0] == pytest.approx(2 / (1 + on), rel=1e-9)
    assert model.activity_[0] == pytest.approx((1 + on) / 2, rel=1e-9)


@pytest.mark.parametrize("estimator", [MaximalCauses, LinearCauses])
def test_the_half_in_the_gaussian_exponent(estimator):
    """One cause W = 2 with σ = 1: log odds of s = 1 for y are (2y − 2) + log π/(1−π), not twice that."""
    model = estimator(1, activity=0.2, noise_scale=1.0, init=[[2.0]], learn=(), **PLAIN).fit([[0.0], [3.0]])
    for y in (0.0, 0.7, 3.0):
        odds = 2 * y - 2 + np.log(0.25)
        assert model.transform([[y]])[0, 0] == pytest.approx(1 / (1 + np.exp(-odds)), rel=1e-10)


def test_two_causes_occlude_or_add():
    """W = (3, 0), (1, 2): together (3, 2) under the maximum and (4, 2) under the sum."""
    W = [[3.0, 0.0], [1.0, 2.0]]
    rows = [[0.0, 0.0], [3.0, 2.0]]
    maximal = MaximalCauses(2, init=W, learn=(), **PLAIN).fit(rows)
    linear = LinearCauses(2, init=W, learn=(), **PLAIN).fit(rows)
    np.testing.assert_array_equal(maximal.inverse_transform([[1, 1], [0, 1], [0, 0]]), [[3, 2], [1, 2], [0, 0]])
    np.testing.assert_array_equal(linear.inverse_transform([[1, 1], [0, 1], [0, 0]]), [[4, 2], [1, 2], [0, 0]])


def test_least_squares_by_hand():
    """σ so small that states are certain: rows 0, a, b, a+b of causes a, b are explained without error."""
    a, b = np.array([4.0, 0.0, 1.0]), np.array([0.0, 5.0, -1.0])
    X = np.array([0 * a, a, b, a + b, a, b])
    model = LinearCauses(
        2, init=[a + 0.1, b - 0.1], noise_scale=0.3, learn=("components", "activity"), annealing=None, random_state=0
    ).fit(X)
    np.testing.assert_allclose(model.components_, [a, b], atol=1e-4)
    np.testing.assert_allclose(model.activity_, [0.5, 0.5], atol=1e-4)


def test_noise_variance_is_the_mean_squared_residual():
    """With fixed certain states, σ² after one step is the mean of (y − w̄)²."""
    X = np.array([[10.5, 0.0], [9.0, 0.5], [10.0, -1.0], [0.0, 0.5], [0.5, 0.0]])
    model = LinearCauses(1, init=[[10.0, 0.0]], noise_scale=1.0, learn=("noise",), **PLAIN).fit(X)
    residuals = X - np.array([[10.0, 0.0]] * 3 + [[0.0, 0.0]] * 2)
    assert model.noise_variance_ == pytest.approx((residuals**2).mean(), rel=1e-9)
