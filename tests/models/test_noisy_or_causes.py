"""Noisy-or causes of binary data."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from sklearn.utils.estimator_checks import check_estimator

import multicause
from multicause import MaximalCauses, NoisyOrCauses
from multicause.arrays import double_precision
from multicause.combinations import Maximum, NoisyOr
from multicause.compatibility import IncompatiblePartsError
from multicause.datasets import make_bars
from multicause.metrics import recovered_causes
from multicause.noises import LeakyBernoulli
from multicause.posteriors import Preselected
from multicause.states.state_list import all_states
from tests.oracles.enumeration import all_states as every_state

BARS = make_bars(400, size=3, value=0.9, combination="noisy_or", noise="bernoulli", random_state=0)


@pytest.fixture(scope="module")
def model():
    return NoisyOrCauses(6, random_state=0).fit(BARS.data)


def log_evidence(model, X):
    """log p(y) by enumeration, in plain NumPy."""
    W, pi, leak = model.components_, model.activity_, model._model.noise.leak
    states = every_state(len(W))
    on = 1 - (1 - leak) * np.prod(np.where(states[:, :, None] > 0, 1 - W, 1.0), axis=1)
    prior = stats.bernoulli.logpmf(states.astype(int), pi).sum(axis=1)
    joint = prior + stats.bernoulli.logpmf(X[:, None].astype(int), on).sum(axis=2)
    return np.logaddexp.reduce(joint, axis=1)


def test_bars_are_found_and_the_bound_never_falls(model):
    assert model.outcome_ == "converged"
    found = recovered_causes(model, BARS.causes)
    assert found.all_found
    plain = NoisyOrCauses(6, init=model.components_ * 0.8 + 0.05, annealing=None, max_iter=30).fit(BARS.data)
    assert (np.diff(plain.lower_bounds_) > -1e-10).all()


def test_scores_are_those_of_enumeration(model):
    X = BARS.data[:20]
    np.testing.assert_allclose(model.score_samples(X), log_evidence(model, X), rtol=1e-8)
    # Preselection that leaves nothing out is exact, and one that leaves something out is a bound.
    settings = {"init": model.components_, "activity": model.activity_, "learn": (), "annealing": None, "max_iter": 1}
    every = NoisyOrCauses(6, posterior=Preselected(6, 6, keep=None), **settings).fit(BARS.data)
    few = NoisyOrCauses(6, posterior=Preselected(3, 2, keep=None), **settings).fit(BARS.data)
    np.testing.assert_allclose(every.score_samples(X), log_evidence(every, X), rtol=1e-8)
    assert (few.score_samples(X) <= log_evidence(few, X) + 1e-9).all()


def test_one_active_cause_is_the_same_under_the_maximum():
    W, tree = np.random.RandomState(0).uniform(0.1, 0.9, (3, 4)), all_states(3)
    single = tree.states().sum(axis=1) <= 1
    with double_precision():
        means = [np.asarray(rule.combine(jnp.asarray(W), tree))[single] for rule in (NoisyOr(), Maximum())]
    np.testing.assert_allclose(*means, rtol=1e-12)


def test_a_feature_that_is_always_on_with_its_cause_does_not_make_the_cause_impossible():
    X = np.repeat([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], 20, axis=0)
    model = NoisyOrCauses(2, random_state=0).fit(X)
    assert model.components_.max() == pytest.approx(0.999)
    assert np.isfinite(model.score_samples([[1.0, 0.0, 0.0]])).all()
    # The upper bound in single precision is larger than in double precision, and still a bound.
    single = NoisyOrCauses(2, random_state=0).fit(X.astype(np.float32)).components_
    assert float(single.max()) > 0.999
    assert NoisyOrCauses(2, init=single, max_iter=1, learn=()).fit(X).components_.max() == 0.999


def test_samples_are_binary_and_distributed_as_the_model_says(model):
    X, causes = model.sample(4000, random_state=0)
    assert set(np.unique(X)) == {0.0, 1.0}
    # Means of 4,000 rows are within five standard errors: false alarms are below one in a million for each pixel.
    on = model.inverse_transform(causes)
    np.testing.assert_allclose(X.mean(axis=0), on.mean(axis=0), atol=5 * 0.5 / np.sqrt(4000))
    np.testing.assert_allclose(model.inverse_transform(np.zeros((1, 6))), model._model.noise.leak)


def test_missing_pixels_are_no_pixels_that_are_off(model):
    X = np.where(np.random.RandomState(0).uniform(size=BARS.data.shape) < 0.4, np.nan, BARS.data)
    settings = {"init": model.components_ * 0.8 + 0.05, "activity": model.activity_, "annealing": None}
    found = NoisyOrCauses(6, max_iter=60, **settings).fit(X)
    assert (np.diff(found.lower_bounds_) > -1e-10).all()
    assert recovered_causes(found, BARS.causes).all_found
    filled = found.impute(X)
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    errors = [((values - BARS.data)[np.isnan(X)] ** 2).mean() for values in (filled, np.nanmean(X, axis=0))]
    assert errors[0] < 0.8 * errors[1]


def test_saved_and_loaded(model, tmp_path):
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(multicause.load(tmp_path / "model").transform(BARS.data), model.transform(BARS.data))


def test_bad_input():
    with pytest.raises(ValueError, match=r"Binary data are needed.*Cut grey values at a threshold"):
        NoisyOrCauses(2).fit(np.random.RandomState(0).normal(size=(10, 3)) ** 2)
    with pytest.raises(ValueError, match="leak of LeakyBernoulli must lie between 1e-06 and 1; got 1.5"):
        NoisyOrCauses(2, noise=LeakyBernoulli(leak=1.5)).fit(BARS.data)
    with pytest.raises(ValueError, match="leak of LeakyBernoulli must lie between 1e-06 and 1; got 'small'"):
        NoisyOrCauses(2, noise=LeakyBernoulli(leak="small")).fit(BARS.data)
    with pytest.raises(ValueError, match="upper of NoisyOr must be a probability below 1; got 1.0"):
        NoisyOrCauses(2, combination=NoisyOr(upper=1.0)).fit(BARS.data)
    for outside in (-0.1, 1.1):
        with pytest.raises(ValueError, match=r"init must have values between 0 and 0.999.*its values lie between"):
            NoisyOrCauses(2, init=np.full((2, 9), outside)).fit(BARS.data)
    with pytest.raises(IncompatiblePartsError, match=r"needs a noisy-or of causes"):
        MaximalCauses(2, noise=LeakyBernoulli()).fit(BARS.data)
    with pytest.raises(ValueError, match="value is the probability of a pixel here and must be at most 1"):
        make_bars(10, noise="bernoulli")
    with pytest.raises(ValueError, match="have means that are no probabilities"):
        make_bars(10, value=0.5, combination="sum", noise="bernoulli")


class CutNoisyOrCauses(NoisyOrCauses):
    """Noisy-or causes that cut the checks' data at their mean: the model takes binary data alone."""

    def _validate_rows(self, X, *, reset):
        rows = super()._validate_rows(X, reset=reset)
        if reset:
            self.threshold_ = np.nanmean(rows)
        cut = np.where(rows < 0, rows, rows > self.threshold_)
        return np.where(np.isnan(rows), np.nan, cut).astype(rows.dtype)


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks(few_block_sizes):
    results = check_estimator(CutNoisyOrCauses(2, max_iter=3, annealing=None, random_state=0), on_skip=None)
    assert {r["check_name"] for r in results if r["status"] != "passed"} <= {"check_array_api_input"}
    assert len(results) >= 53
