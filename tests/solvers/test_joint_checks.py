"""The test of a user's log joint, and the rows that it is given."""

import jax.numpy as jnp
import numpy as np
import pytest

from multicause.arrays import double_precision
from multicause.solvers.joint_checks import check_initial, check_log_joint, rows_to_test

RANDOM = np.random.RandomState(0)
ROWS = RANDOM.normal(size=(8, 9))
PARAMETERS = {"components": RANDOM.normal(size=(6, 9)), "log_odds": np.full(6, -0.5), "log_sigma": np.array(0.1)}


@pytest.fixture(autouse=True)
def _in_double_precision():
    with double_precision():
        yield


def linear(parameters, states, rows):
    """The log joint of linear causes with Gaussian noise, up to a constant."""
    errors = (rows[:, None] - states @ parameters["components"]) / jnp.exp(parameters["log_sigma"])
    return states @ parameters["log_odds"] - 0.5 * jnp.sum(errors**2, axis=-1)


class Forgetful:
    """A function that is not pure."""

    calls = 0

    def __call__(self, parameters, states, rows):
        self.calls += 1
        return linear(parameters, states, rows) + self.calls


class Keeping:
    """A function that keeps an argument and uses it later."""

    rows = 0.0

    def __call__(self, parameters, states, rows):
        value = linear(parameters, states, rows) + 0 * jnp.sum(self.rows)
        self.rows = rows
        return value


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda p, s, y: linear(p, s, y).T, r"here \(8, 6\); got \(6, 8\)"),
        (lambda p, s, y: linear(p, s, y) * jnp.nan, "without NaN"),
        (lambda p, s, y: linear(p, s, y) + jnp.inf, r"48 of 48 values were NaN or \+∞"),
        (lambda p, s, y: linear(p, s, y) * 1j, "of real numbers; got complex128"),
        (lambda p, s, y: 1 / 0, "it failed with ZeroDivisionError"),
        (lambda p, s, y: linear(p, s, y) - linear(p, s, y).mean(), "for each state and row on its own"),
        (lambda p, s, y: linear(p, s, y) + jnp.sqrt(0 * p["log_sigma"] ** 2), "whose gradient is finite"),
        (lambda p, s, y: jnp.asarray(np.array(linear(p, s, y))), "compiled and differentiated"),
        (Forgetful(), "two calls differed"),
        (Keeping(), "compiled and differentiated; that failed with UnexpectedTracerError"),
        (lambda p, s, y: linear(p, s / s.sum(axis=-1, keepdims=True), y), r"8 of 48 values were NaN"),
    ],
    ids=[
        "shape",
        "nan",
        "infinite",
        "complex",
        "raises",
        "mixes rows",
        "gradient",
        "numpy",
        "impure",
        "keeps",
        "empty",
    ],
)
def test_functions_that_cannot_be_learned_are_refused(function, message):
    with pytest.raises(ValueError, match=message):
        check_log_joint(function, PARAMETERS, ROWS, 6)


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        (None, "a dict of arrays of finite numbers; got None"),
        ({"W": "a"}, r"parameters\['W'\] is 'a'. Use real numbers"),
        ({"a": 1.0, "W": np.array([1.0, np.nan])}, r"1 of 2 values of parameters\['W'\] are NaN or infinite"),
    ],
)
def test_initial_parameters_that_are_no_finite_numbers_are_refused(initial, message):
    with pytest.raises(ValueError, match=message):
        check_initial(initial)
    check_initial(PARAMETERS)


def test_a_pure_function_of_states_and_rows_passes():
    check_log_joint(linear, PARAMETERS, ROWS, 6)


def test_half_of_the_rows_have_missing_values_if_there_are_any():
    X = np.arange(40.0)[:, None].repeat(2, axis=1)
    np.testing.assert_array_equal(rows_to_test(X)[:, 0], np.arange(8))
    X[[3, 20, 25, 30, 35, 39], 1] = np.nan
    np.testing.assert_array_equal(rows_to_test(X)[:, 0], [0, 1, 2, 4, 3, 20, 25, 30])
    np.testing.assert_array_equal(rows_to_test(X[35:])[:, 0], [36, 37, 38, 35, 39])
