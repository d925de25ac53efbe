"""Quasi-Newton steps of independent components: their direction, and the maximum that they find."""

import numpy as np
import pytest

from multicause import IndependentComponents
from multicause.metrics import amari_distance
from multicause.solvers.quasi_newton import direction, precondition

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_both_solvers_find_the_same_maximum(seed):
    random = np.random.RandomState(seed)
    X = random.laplace(size=(2000, 4)) @ random.normal(size=(4, 4)) + 2
    second = IndependentComponents(random_state=seed, tol=1e-8).fit(X)
    first = IndependentComponents(random_state=seed, solver="natural_gradient", tol=1e-10, max_iter=2000).fit(X)
    assert second.outcome_ == first.outcome_ == "converged"
    assert first.lower_bound_ == pytest.approx(second.lower_bound_, abs=1e-6)
    assert amari_distance(first.components_, second.components_) < 0.01
    v = second.transform(X)
    assert np.abs(np.eye(4) - np.tanh(v).T @ v / len(v)).max() < 1e-7  # TN10 eq. 10.38 at rest
    assert np.diff(second.lower_bounds_).min() > -1e-12
    assert np.diff(first.lower_bounds_).min() > -1e-12
    assert second.n_iter_ < first.n_iter_


def test_preconditioning_solves_pairs_of_equations():
    """With curvature h, the approximate Hessian maps E_ab to h_ab E_ab + E_ba."""
    random = np.random.RandomState(0)
    E, h = random.normal(size=(5, 5)), random.uniform(1.5, 3, (5, 5))
    np.testing.assert_allclose(precondition(h * E + E.T, h), E)


def test_directions_reproduce_the_last_change():
    """Secant equation: L-BFGS maps the last fall of the gradient to the last step."""
    random = np.random.RandomState(0)
    curvature = random.uniform(1.5, 3, (5, 5))
    steps = random.normal(size=(3, 5, 5))
    history = tuple((step, 2 * step + 0.1 * random.normal(size=(5, 5))) for step in steps)
    last, fall = history[-1]
    np.testing.assert_allclose(direction(fall, curvature, history), last)
    np.testing.assert_array_equal(direction(fall, curvature, ()), precondition(fall, curvature))
