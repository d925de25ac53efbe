"""Sample → fit → recover: models find the causes that made the data.

Every fit here succeeded for all of a hundred seeds when the test was written, so that a false alarm is improbable; the
papers' settings and many trials are in ``multicause reproduce``.
"""

import numpy as np
import pytest

from multicause import LinearCauses, MaximalCauses
from multicause.datasets import make_bars
from multicause.metrics import recovered_causes


@pytest.mark.parametrize("noise", ["poisson", "gaussian"])
def test_maximal_causes_finds_the_bars(noise, seed):
    bars = make_bars(300, size=3, noise=noise, noise_scale=2.0, random_state=seed)
    model = MaximalCauses(6, noise=noise, random_state=seed).fit(bars.data)
    found = recovered_causes(model, bars.causes)
    assert found.all_found
    assert np.abs(model.activity_[found.mapping] - bars.states.mean(axis=0)).max() < 0.05
    if noise == "gaussian":
        assert model.noise_variance_ == pytest.approx(4.0, rel=0.15)


def test_likelihood_ends_at_or_above_that_of_the_generating_parameters(seed):
    """MCA08 figure 6."""
    bars = make_bars(300, size=3, noise="poisson", random_state=seed)
    model = MaximalCauses(6, noise="poisson", random_state=seed).fit(bars.data)
    truth = MaximalCauses(
        6, noise="poisson", init=bars.causes, activity=bars.activity, learn=(), max_iter=1, annealing=None, tol=0.0
    )
    with pytest.warns(UserWarning, match="max_iter"):
        truth.fit(bars.data)
    assert model.lower_bound_ >= truth.lower_bound_


def test_linear_causes_recover_what_a_model_generated(seed):
    """From parameters near the true ones, EM on 2000 samples ends near them: the optimum is where it should be."""
    random = np.random.RandomState(seed)
    W = random.normal(0, 3, (4, 12))
    S = random.uniform(size=(2000, 4)) < [0.2, 0.3, 0.4, 0.25]
    X = S @ W + random.normal(0, 0.8, (2000, 12))
    model = LinearCauses(4, init=W + random.normal(0, 0.3, W.shape), random_state=0).fit(X)
    np.testing.assert_allclose(model.components_, W, atol=0.35)
    np.testing.assert_allclose(model.activity_, S.mean(axis=0), atol=0.02)
    assert model.noise_variance_ == pytest.approx(0.64, rel=0.05)


def test_repair_leaves_the_local_optimum_of_figure_7():
    """A start with one bar twice and one mixture of two bars stays there without repair, and is mended with it."""
    bars = make_bars(400, noise="poisson", random_state=0)
    start = bars.causes.copy()
    start[0] = start[1]
    start[2] = 0.5 * np.maximum(bars.causes[0], bars.causes[2])
    start += 0.05
    settings = {"noise": "poisson", "init": start, "random_state": 0}
    stuck = MaximalCauses(10, repair=False, **settings).fit(bars.data)
    mended = MaximalCauses(10, repair=True, **settings).fit(bars.data)
    assert not recovered_causes(stuck, bars.causes).all_found
    assert recovered_causes(mended, bars.causes).all_found
    assert mended.lower_bound_ > stuck.lower_bound_ + 1
    assert np.diff(mended.lower_bounds_)[-3:].min() > -1e-9
