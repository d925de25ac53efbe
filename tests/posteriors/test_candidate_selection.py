"""Scores by which candidates are selected: bounds, scale, and functions of users."""

import jax.numpy as jnp
import numpy as np
import pytest

from multicause import LinearCauses, MaximalCauses
from multicause.arrays import double_precision
from multicause.datasets import make_bars
from multicause.posteriors import Preselected, UpperBound
from tests.oracles import enumeration as oracle
from tests.posteriors.conftest import CASES, D, H

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


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
