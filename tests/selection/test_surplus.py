"""Components that a model does not need."""

import numpy as np
import pytest

from multicause import MaximalCauses, MixtureOfPoissons
from multicause.datasets import make_bars
from multicause.posteriors import Preselected
from multicause.selection import surplus_components

BARS = make_bars(200, size=3, noise="poisson", random_state=0)


def with_components(components, posterior=None):
    """A model that keeps the given components, and learns their activities."""
    settings = {"noise": "poisson", "learn": ("activity",), "annealing": None, "max_iter": 5, "posterior": posterior}
    return MaximalCauses(len(components), init=components, **settings).fit(BARS.data)


def both(first, second):
    return BARS.causes[[first, second]].max(axis=0)


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_copies_and_coincidences_are_surplus_and_causes_are_not():
    """The second bar is there twice, and one component represents two bars that coincide."""
    components = np.array([both(0, 3), *BARS.causes, BARS.causes[1]])
    model = with_components(components, Preselected(6, 5, keep=None))
    before = model.components_.copy(), model.activity_.copy(), model.score_samples(BARS.data)
    found = surplus_components(model, BARS.data)
    needed = components[~found.surplus]
    np.testing.assert_array_equal(np.unique(needed, axis=0), np.unique(BARS.causes, axis=0))
    assert len(needed) == 6
    assert (found.losses[found.surplus] <= 2 * found.errors[found.surplus]).all()
    tried = ~found.surplus & ~np.isnan(found.losses)
    assert tried.sum() == 3
    assert (found.losses[tried] > 2 * found.errors[tried]).all()
    for now, then in zip((model.components_, model.activity_, model.score_samples(BARS.data)), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_a_richer_posterior_needs_no_components_for_more_causes_than_the_own_considers():
    """One row in ten has more than three bars, which three components explain if one of them represents two bars."""
    model = with_components(np.array([*BARS.causes, both(0, 3)]), Preselected(5, 3, keep=None))
    assert not surplus_components(model, BARS.data).surplus[6]
    np.testing.assert_array_equal(surplus_components(model, BARS.data, posterior="exact").surplus, np.arange(7) == 6)


def test_a_frequent_coincidence_is_told_from_a_rare_cause():
    """The fourth bar is rare, and the first two often coincide: activities alone would name the wrong one."""
    random = np.random.RandomState(0)
    states = random.uniform(size=(300, 6)) < [0.5, 0.5, 0.2, 0.1, 0.2, 0.2]
    X = random.poisson(np.max(states[:, :, None] * BARS.causes, axis=1)).astype(float)
    components = np.array([*BARS.causes, both(0, 1)])
    settings = {"noise": "poisson", "learn": ("activity",), "annealing": None, "max_iter": 5}
    model = MaximalCauses(7, init=components, activity=[0.3, 0.3, 0.2, 0.1, 0.2, 0.2, 0.3], **settings).fit(X)
    assert model.activity_.argmin() == 3
    np.testing.assert_array_equal(surplus_components(model, X).surplus, np.arange(7) == 6)


def test_losses_are_differences_of_scores_of_smaller_models():
    components = np.array([*BARS.causes, both(0, 3)])
    settings = {"noise": "poisson", "learn": (), "annealing": None, "max_iter": 1, "activity": 0.3}
    model = MaximalCauses(7, init=components, **settings).fit(BARS.data)
    smaller = MaximalCauses(6, init=BARS.causes, **settings).fit(BARS.data)
    found = surplus_components(model, BARS.data)
    difference = model.score_samples(BARS.data) - smaller.score_samples(BARS.data)
    assert found.losses[6] == pytest.approx(difference.mean())
    assert found.errors[6] == pytest.approx(difference.std(ddof=1) / np.sqrt(200))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_silent_components_are_surplus_though_rounding_is_alike_in_all_rows(dtype):
    """Data without noise, learned with three components too many, have losses of 1e-10 with errors of 1e-11.

    In single precision, losses would be 1e-3 with errors of 2e-4.
    """
    bars = make_bars(200, size=3, random_state=6).data.astype(dtype)
    model = MaximalCauses(9, random_state=6).fit(bars)
    assert (model.activity_ < 1e-3).sum() == 3
    np.testing.assert_array_equal(surplus_components(model, bars).surplus, model.activity_ < 1e-3)


def test_weights_are_repetitions():
    model = with_components(np.array([*BARS.causes, BARS.causes[1]]))
    weights = np.random.RandomState(0).randint(3, size=200)
    one = surplus_components(model, BARS.data, sample_weight=weights)
    other = surplus_components(model, np.repeat(BARS.data, weights, axis=0))
    np.testing.assert_array_equal(one.surplus, other.surplus)
    np.testing.assert_allclose(one.losses, other.losses, rtol=1e-6, atol=1e-9)


def test_bad_input():
    model = with_components(BARS.causes)
    with pytest.raises(TypeError, match=r"independently on or off.*got MixtureOfPoissons. Use component_curve"):
        surplus_components(MixtureOfPoissons(2, random_state=0).fit(BARS.data), BARS.data)
    with pytest.raises(ValueError, match="Unknown posterior 'whole'. Known"):
        surplus_components(model, BARS.data, posterior="whole")
    with pytest.raises(ValueError, match=r"sample_weight must be 200 finite numbers.*shape \(3,\)"):
        surplus_components(model, BARS.data, sample_weight=np.ones(3))


def test_one_component_is_needed():
    assert not surplus_components(with_components(BARS.causes[:1]), BARS.data).surplus.any()
