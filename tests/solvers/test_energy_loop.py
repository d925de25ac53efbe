"""The loop of contrastive divergence: lengths of its rounds, and when it has converged."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from multicause import EnergyComponents
from multicause.outcomes import Outcome
from multicause.solvers import energy_loop
from multicause.solvers.energy_loop import ROUND_BYTES, round_length
from tests.solvers.mixtures import mixture


@pytest.mark.parametrize(
    ("max_iter", "batch_bytes", "length"),
    [(20, 1, 1), (100, 1, 1), (101, 1, 2), (5000, 1, 50), (10**6, 1, 100), (5000, ROUND_BYTES // 7, 7), (9, 2**40, 1)],
)
def test_a_fit_has_a_hundred_rounds_unless_updates_or_memory_are_too_many(max_iter, batch_bytes, length):
    assert round_length(max_iter, batch_bytes) == length


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e300])
def test_drift_is_relative_to_the_norm_of_the_filters(scale):
    before = np.array([[3.0, 4.0], [0.0, 0.0]])
    after = np.array([[3.0, 4.0], [1.0, 0.0]])
    drift = energy_loop._drift(scale * after, scale * before)
    assert drift == pytest.approx(1 / np.sqrt(26))


@pytest.mark.parametrize(("drift", "acceptance", "converged"), [(0.1, 0.6, True), (0.3, 0.6, False), (0.1, 0.0, False)])
def test_chains_must_move_for_filters_to_have_converged(drift, acceptance, converged):
    """The acceptance rate is that of the last tenth of the rounds."""
    method = SimpleNamespace(sampler=SimpleNamespace(has_settled=lambda rate: 0.5 < rate < 0.7))
    acceptances = np.array([0.9] * 90 + [acceptance] * 10)
    outcome = energy_loop._outcome(method, drift, acceptances, 0.2)
    assert outcome == (Outcome.CONVERGED if converged else Outcome.MAX_ITER)


@pytest.mark.parametrize("sampler", ["exact", "metropolis"])
def test_a_schedule_that_ends_too_early_is_not_called_converged(sampler):
    """Rates have fallen to a hundredth, so filters rest at the end; but far from where they belong."""
    with pytest.warns(ConvergenceWarning, match=r"in the last quarter of learning.*\(1\) Raise max_iter"):
        model = EnergyComponents(sampler=sampler, max_iter=20, random_state=0).fit(mixture(4000)[0])
    assert model.outcome_ == "max_iter"
    assert model.lower_bound_ < -10  # of −6.8 at the maximum
