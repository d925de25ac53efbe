"""The data cut: learning from those rows only that few active causes explain."""

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from multicause import MaximalCauses
from multicause.annealing import LinearCooling
from multicause.datasets import make_bars
from multicause.engines import Local
from multicause.posteriors import Preselected
from multicause.priors import Bernoulli
from tests.posteriors.conftest import H

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


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


def test_activity_is_corrected_for_rows_that_were_cut():
    """With γ = 2 of 8 causes, one row in three is left out; π must still come out right.

    Standard error of the mean activity over 2000 rows and 8 causes is 0.003; 5 of them, false alarm below 1e-5.
    """
    bars = make_bars(2000, size=4, activity=0.25, noise="gaussian", noise_scale=0.5, random_state=0)
    posterior = Preselected(8, 2, keep=1.0)
    model = MaximalCauses(
        8, posterior=posterior, annealing=None, init=bars.causes, noise_scale=0.5, tol=1e-4, random_state=0
    )
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
