"""Defects that were found once, and must not come back."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.callback import ProgressBar

from multicause import LinearCauses, MaximalCauses
from multicause.annealing import ConditionalCooling, LinearCooling
from multicause.combinations import Maximum, Sum
from multicause.datasets import make_bars
from multicause.metrics import recovered_causes
from multicause.noises import Noise, Poisson
from multicause.posteriors import Exact
from multicause.updates import Coordinates, CreditMean, Gradient, Multiplicative
from tests.estimators.test_sklearn import Recorder

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
BARS = make_bars(150, size=3, noise="gaussian", noise_scale=1.0, random_state=0)
COUNTS = make_bars(400, size=3, noise="poisson", combination="sum", random_state=0).data


@pytest.mark.parametrize("update", [None, "gradient"])
def test_a_long_stream_stays_stable(update):
    """Statistics of a batch are relative to the parameters of that batch only in ways that averages may mix."""
    model = LinearCauses(6, noise="poisson", update=update, random_state=0)
    scores = []
    for batch in range(200):
        start = 40 * (batch % 10)
        model.partial_fit(COUNTS[start : start + 40])
        if batch % 50 == 9:
            scores.append(model.score(COUNTS))
    assert model.outcome_ == "max_iter"
    assert np.diff(scores).min() > -0.1
    assert scores[-1] > scores[0]


@pytest.mark.parametrize("final", [1.5, 3.0, 5.0])
def test_em_at_a_temperature_raises_its_free_energy(final):
    """⟨log p⟩ + T H(q) is what tempered EM raises; the bound ⟨log p⟩ + H(q) may fall meanwhile."""
    X = make_bars(100, size=3, noise="gaussian", combination="sum", random_state=0).data
    schedule = ConditionalCooling(final, final=final, hold=0)
    model = LinearCauses(3, annealing=schedule, random_state=0, max_iter=300).fit(X)
    assert model.outcome_ in ("converged", "cause_died")


class Leaping(CreditMean):
    """An update that leaps so far that nearly all scores overflow, with finite weights."""

    def maximize(self, model, parameters, statistics):
        return super().maximize(model, parameters, statistics) * (1 + 1e200 * (statistics["credit"].sum() > 20))


def test_a_leap_is_not_kept():
    model = MaximalCauses(2, update=Leaping(), random_state=0, annealing=None).fit(BARS.data)
    assert np.isfinite(model.lower_bound_)
    assert np.abs(model.components_).max() < 100
    assert np.isfinite(model.score(BARS.data))


@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 1e4), (np.float64, 1e9)])
def test_an_offset_does_not_make_data_look_constant(dtype, offset):
    X = (np.random.RandomState(0).normal(size=(50, 3)) + offset).astype(dtype)
    assert np.isfinite(LinearCauses(2, random_state=0, max_iter=3).fit(X).components_).all()


def test_a_stopped_model_is_the_one_that_the_callback_saw():
    recorder = Recorder(stop_after=4)
    model = MaximalCauses(3, random_state=0, tol=0.0, annealing=None).set_callbacks(recorder).fit(BARS.data)
    assert model.n_iter_ == 4
    assert model.score(BARS.data) == pytest.approx(recorder.scores[-1], rel=1e-12)
    assert model.lower_bound_ == pytest.approx(recorder.scores[-1], rel=1e-12)


def test_a_stop_during_repair_is_obeyed_at_once():
    settings = {"random_state": 0, "tol": 1e-4}
    before = MaximalCauses(4, repair=False, **settings).fit(BARS.data).n_iter_
    recorder = Recorder(stop_after=before + 3)
    model = MaximalCauses(4, **settings).set_callbacks(recorder).fit(BARS.data)
    assert model.outcome_ == "stopped"
    assert len(recorder.scores) == before + 3


def test_callbacks_with_several_starts_and_repair():
    model = MaximalCauses(4, n_init=4, max_iter=60, random_state=1).set_callbacks(ProgressBar())
    assert np.isfinite(model.fit(BARS.data).lower_bound_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fixed_noise_scale_is_kept(dtype):
    model = MaximalCauses(3, noise_scale=1e-2, learn=("components", "activity"), max_iter=2, random_state=0)
    assert model.fit(BARS.data.astype(dtype)).noise_variance_ == pytest.approx(1e-4, rel=1e-6)


def test_outcome_counts_weights_as_repetitions():
    settings = {"learn": (), "noise_scale": 100.0, "activity": 0.03, "annealing": None, "random_state": 0}
    X = np.random.RandomState(0).uniform(0, 9, (10, 4))
    few = MaximalCauses(2, **settings).fit(X)
    weighted = MaximalCauses(2, **settings).fit(X, sample_weight=np.full(10, 1000.0))
    repeated = MaximalCauses(2, **settings).fit(np.repeat(X, 1000, axis=0))
    padded = MaximalCauses(2, **settings).fit(np.vstack([X, X]), sample_weight=np.repeat([1.0, 0.0], 10))
    assert few.outcome_ == padded.outcome_ == "cause_died"
    assert weighted.outcome_ == repeated.outcome_ == "converged"


def test_rows_without_weight_are_no_starts():
    X = np.vstack([np.full((20, 4), 1e6), BARS.data[:20, :4]])
    weights = np.repeat([0.0, 1.0], 20)
    model = MaximalCauses(3, init="data", learn=(), max_iter=1, random_state=0).fit(X, sample_weight=weights)
    assert model.components_.max() < 100


def test_components_that_became_equal_are_named():
    """Far above the critical temperature all causes become copies of one."""
    schedule = ConditionalCooling(200.0, final=150.0, n_steps=2)
    model = MaximalCauses(3, annealing=schedule, random_state=0).fit(BARS.data)
    assert model.outcome_ == "cause_died"


def test_a_pickled_model_has_no_stale_hash():
    parts = MaximalCauses(2, max_iter=1, random_state=0).fit(BARS.data)._model
    assert b"_hash" not in pickle.dumps(parts)
    assert hash(pickle.loads(pickle.dumps(parts))) == hash(parts)


def test_parts_of_a_fitted_model_are_copies():
    model = MaximalCauses(2, max_iter=1, random_state=0).fit(BARS.data)
    model.posterior_.set_params(max_states=4)
    assert model._model.posterior.max_states == 2**16


def test_partial_fit_keeps_the_dtype():
    model = MaximalCauses(2, max_iter=2, random_state=0).fit(BARS.data.astype(np.float32))
    model.partial_fit(BARS.data)
    assert model.components_.dtype == model.activity_.dtype == np.float32
    assert len(model.lower_bounds_) == len(model.temperatures_)


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_units_do_not_matter(factor):
    usual = MaximalCauses(6, random_state=0).fit(BARS.data)
    scaled = MaximalCauses(6, random_state=0).fit(BARS.data * factor)
    np.testing.assert_allclose(scaled.components_ / factor, usual.components_, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n_components", [63, 64, 20_000, np.int64(64)])
def test_any_number_of_causes_too_many_is_refused_clearly(n_components):
    with pytest.raises(ValueError, match=rf"has 2\^{n_components}.* states, more than max_states=65,536"):
        MaximalCauses(n_components, posterior="exact").fit(BARS.data)


class Halfway(Noise):
    """A noise that leaves out most of what it must have."""

    def natural(self, mean, parameters):
        return mean


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        (
            {"noise": Halfway()},
            TypeError,
            "Halfway must implement log_base, log_normalizer, sample, variance",
        ),
        ({"noise": Poisson(floor=0.0)}, ValueError, "floor of Poisson must be a positive number; got 0.0"),
        ({"combination": Maximum(credit="soft")}, ValueError, "Unknown credit 'soft' of Maximum. Known: 'power', 'sig"),
        (
            {"combination": Maximum(least_temperature=0.5)},
            ValueError,
            "least_temperature of Maximum must be at least 1",
        ),
        ({"combination": Sum()}, TypeError, "combination must be .*a Maximum object; got Sum"),
        ({"update": Gradient(rate=-1.0)}, ValueError, "rate of Gradient must be a positive number; got -1.0"),
        ({"update": Multiplicative(n_steps=0)}, ValueError, "n_steps of Multiplicative must be at least 1"),
        ({"posterior": Exact(max_states=1e4)}, ValueError, "max_states of Exact must be a whole number"),
    ],
)
def test_parts_are_checked(settings, error, text):
    with pytest.raises(error, match=text):
        MaximalCauses(2, **settings).fit(BARS.data)


def test_every_credit_and_sign_can_be_chosen():
    sigmoid = MaximalCauses(3, combination=Maximum(credit="sigmoid"), annealing=LinearCooling(3.0), random_state=0)
    assert np.isfinite(sigmoid.fit(BARS.data).components_).all()
    assert sigmoid.get_params()["combination__credit"] == "sigmoid"
    positive = LinearCauses(3, combination=Sum(nonnegative=True), random_state=0).fit(BARS.data)
    assert isinstance(positive.update_, Coordinates)
    assert positive.components_.min() >= 0


def test_changed_settings_do_not_disturb_a_fitted_model():
    model = MaximalCauses(3, max_iter=2, random_state=0).fit(BARS.data)
    assert model.set_params(n_components=40).transform(BARS.data).shape == (150, 3)


def test_names_of_features_do_not_leak_a_warning():
    model = MaximalCauses(6, max_iter=2, random_state=0).fit(pd.DataFrame(BARS.data).rename(columns=str))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recovered_causes(model, BARS.causes)


def test_updates_that_oscillate_converge():
    """The components of this fit once oscillated for 500 iterations, so that repair was never reached."""
    model = MaximalCauses(6, random_state=1).fit(BARS.data)
    assert model.converged_
    assert recovered_causes(model, BARS.causes).all_found
