"""Spike-and-slab causes: recovery, what is learned, replacement of unused components, and errors."""

from copy import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linear_sum_assignment

import multicause
from multicause import LinearCauses, SpikeAndSlabCauses
from multicause.compatibility import IncompatiblePartsError
from multicause.em import usage
from multicause.em.results import FitResult
from multicause.engines import Local
from multicause.inference import arrange
from multicause.model import Statistics
from multicause.posteriors import Beam
from multicause.priors import SpikeAndSlab
from multicause.search.replacement import replace_hardly_used
from tests.conftest import optimizations
from tests.oracles.parts import SpikeEnumeration

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
H, D = 8, 12


def make_rows(n, seed, mean=0.0, scale=2.0, noise=0.2, dtype=np.float64):
    """Rows of eight causes with components of length one, each active in a quarter of the rows."""
    random = np.random.RandomState(1000 + seed)  # not the numbers from which a model starts
    W = random.normal(size=(H, D))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    causes = (random.uniform(size=(n, H)) < 0.25) * (mean + scale * random.normal(size=(n, H)))
    return (causes @ W + noise * random.normal(size=(n, D))).astype(dtype), causes, W


def matched(model, W):
    """Cosines of true components with the learned ones that suit them best, and which these are."""
    cosine = np.abs(W @ model.components_.T)
    true, learned = linear_sum_assignment(-cosine)
    return cosine[true, learned], learned


@pytest.fixture(scope="module")
def data():
    return make_rows(1500, 0)


@pytest.fixture(scope="module")
def model(data):
    # From one start, all causes are found in about two of three data sets.
    with optimizations():
        return SpikeAndSlabCauses(H, annealing=None, n_init=6, random_state=0, max_iter=60).fit(data[0])


def test_sample_fit_recover(model, data):
    """1500 rows tell π within 0.011 and ψ within 8 % (standard errors); five of them in 24 comparisons are a false
    alarm in one of a hundred thousand data sets.
    """
    X, causes, W = data
    cosine, learned = matched(model, W)
    assert cosine.min() > 0.99
    assert np.sqrt(model.noise_variance_) == pytest.approx(0.2, rel=0.1)
    np.testing.assert_allclose(model.activity_[learned], 0.25, atol=5 * 0.011)
    np.testing.assert_allclose(model.slab_variance_[learned], 4.0, rtol=5 * 0.08)
    assert (model.slab_mean_ == 0).all()
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1, rtol=1e-12)
    sign = np.sign(np.sum(W * model.components_[learned], axis=1))
    found = model.transform(X)[:, learned] * sign
    assert np.corrcoef(found.ravel(), causes.ravel())[0, 1] > 0.97


def test_recognized_spikes_and_slabs_make_the_reconstruction(model, data):
    X = data[0][:50]
    found = model.recognize(X, top=None)
    assert found._fields == ("states", "probabilities", "log_evidence", "slabs")
    assert found.states.shape == found.slabs.shape == (50, Beam().n_states(H), H)
    assert ((found.slabs != 0) <= (found.states == 1)).all()
    means = np.einsum("nk,nkh->nh", found.probabilities, found.slabs)
    np.testing.assert_allclose(means, model.transform(X), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(model.reconstruct(X), means @ model.components_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.inverse_transform(means), means @ model.components_, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.log_evidence, model.score_samples(X), rtol=1e-12)


def test_evidence_and_causes_equal_enumeration(data):
    X = data[0][:60]
    model = SpikeAndSlabCauses(4, posterior="exact", noise="diagonal_gaussian", max_iter=3, random_state=0).fit(X)
    truth = SpikeEnumeration(model._parameters, X)
    np.testing.assert_allclose(model.score_samples(X), truth.free_energy, rtol=1e-10)
    np.testing.assert_allclose(model.transform(X), truth.mean_causes, rtol=1e-8, atol=1e-10)


def test_the_exact_posterior_never_lowers_the_bound(data):
    names = ("components", "activity", "slab_mean", "slab_variance", "noise")
    settings = {"posterior": "exact", "annealing": None, "learn": names, "max_iter": 60, "tol": 0, "random_state": 0}
    model = SpikeAndSlabCauses(4, **settings).fit(data[0][:200])
    assert model.outcome_ == "max_iter"
    assert np.diff(model.lower_bounds_).min() > -1e-10


def test_means_of_slabs_are_learned_if_asked_for(optimized):
    X, _, W = make_rows(1500, 1, mean=3.0, scale=0.5)
    names = ("components", "activity", "slab_mean", "slab_variance", "noise")
    model = SpikeAndSlabCauses(H, learn=names, n_init=6, random_state=0, max_iter=100).fit(X)
    cosine, learned = matched(model, W)
    assert cosine.min() > 0.99
    assert np.median(np.abs(model.slab_mean_[learned])) == pytest.approx(3.0, rel=0.1)


def test_what_is_not_learned_stays(data):
    X, _, W = data
    model = SpikeAndSlabCauses(
        H, learn=("slab_variance",), init=2 * W, activity=0.3, noise_scale=0.5, annealing=None, max_iter=5
    ).fit(X)
    np.testing.assert_allclose(model.components_, W, rtol=1e-12)
    np.testing.assert_allclose(model.activity_, 0.3)
    assert model.noise_variance_ == pytest.approx(0.25)
    assert np.ptp(model.slab_variance_) > 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_units_of_the_data_do_not_matter(dtype, data):
    """Data a thousand times as large have slabs a thousand times as large."""
    settings = {"max_iter": 12, "annealing": None, "random_state": 0}
    one, other = (SpikeAndSlabCauses(H, **settings).fit((scale * data[0][:300]).astype(dtype)) for scale in (1, 1024))
    np.testing.assert_allclose(other.components_, one.components_, atol=1e-2 if dtype == np.float32 else 1e-9)
    np.testing.assert_allclose(other.slab_variance_, 1024**2 * one.slab_variance_, rtol=0.02)


def fit_of(model, statistics=None):
    """The end of a fit, as learning has it."""
    bounds = model.lower_bounds_
    return FitResult(
        model._parameters, bounds[-1], bounds, bounds, model.n_iter_, model.n_iter_, True, None, statistics
    )


def test_an_unused_component_becomes_a_residual(model, data):
    X, _, W = data
    _, learned = matched(model, W)
    components = model.components_.copy()
    components[learned[0]] = np.eye(D)[0]
    parameters = model._parameters._replace(components=components)
    active = np.where(np.arange(H) == learned[0], 0.1, 300.0)
    nothing = np.zeros(())
    statistics = Statistics(nothing, nothing, nothing, nothing, nothing, {}, {"active": active}, {}, {})
    pool = arrange(model._model, Local().load(X, np.ones(len(X))), H)
    before = fit_of(model, statistics)._replace(parameters=parameters)
    with multicause.arrays.double_precision():
        after = replace_hardly_used(model._model, pool, before, np.random.RandomState(0))
    changed = copy(model)
    changed._parameters = parameters
    residuals, evidence = X - changed.reconstruct(X), changed.score_samples(X)
    cosine = residuals @ after.parameters.components[learned[0]] / np.linalg.norm(residuals, axis=1)
    assert cosine.max() == pytest.approx(1)
    assert evidence[cosine.argmax()] < np.quantile(evidence, 0.11)
    others = np.arange(H) != learned[0]
    np.testing.assert_array_equal(after.parameters.components[others], components[others])
    for name, values in after.parameters.prior.items():
        assert values[learned[0]] == pytest.approx(model._parameters.prior[name][others].mean())
    assert after.bound_changes[0].reason == "1 components that were hardly used were replaced"
    assert not after.converged
    everything = statistics.__class__(*([nothing] * 5), {}, {"active": np.full(H, 300.0)}, {}, {})
    assert replace_hardly_used(model._model, pool, before._replace(statistics=everything), None).bound_changes == ()


@pytest.mark.parametrize("n_init", [1, 2])
def test_replacements_are_part_of_the_history(n_init, data, monkeypatch):
    """With a threshold so high, less active components are replaced at every opportunity."""
    monkeypatch.setattr(usage, "HARDLY_USED", 0.95)
    settings = {"posterior": Beam(2, 2), "random_state": 0, "max_iter": 40, "tol": 0}
    model = SpikeAndSlabCauses(H, n_init=n_init, **settings).fit(data[0][:300])
    assert [change.start for change in model.bound_changes_] == ([9, 17, 25, 33] if n_init == 1 else [21, 29])
    assert all("components that were hardly used were replaced" in change.reason for change in model.bound_changes_)
    assert len(model.lower_bounds_) == len(model.temperatures_) == model.n_iter_ + 1 == 41
    assert model.lower_bound_ > model.lower_bounds_[0]


def test_a_stream_of_batches(data):
    X = data[0]
    model = SpikeAndSlabCauses(H, random_state=0)
    for start in range(0, 1500, 150):
        model.partial_fit(X[start : start + 150])
    assert model.score(X) > SpikeAndSlabCauses(H, random_state=0).partial_fit(X[:150]).score(X)


@pytest.mark.parametrize(
    ("estimator", "kind", "message"),
    [
        (
            SpikeAndSlabCauses(2, learn=("slabs",)),
            ValueError,
            r"names from \('components', 'noise', 'activity', 'slab_",
        ),
        (SpikeAndSlabCauses(2, noise="poisson"), IncompatiblePartsError, r"needs a variance that does not depend on"),
        (SpikeAndSlabCauses(2, posterior="preselected"), IncompatiblePartsError, r"posterior=Beam\(\) or Exact\(\)"),
        (LinearCauses(2, prior=SpikeAndSlab()), IncompatiblePartsError, "needs .* as SpikeAndSlabCauses has"),
    ],
)
def test_errors(estimator, kind, message):
    with pytest.raises(kind, match=message):
        estimator.fit(np.eye(4))


def test_single_causes_have_no_state_of_their_own(model, data):
    with pytest.raises(TypeError, match="no states with a single active cause"):
        model.score_single_causes(data[0])


def test_replacement_leaves_what_is_not_learned():
    model = SpikeAndSlabCauses(4, activity=[0.001, 0.1, 0.2, 0.3], learn=("components", "noise"), random_state=0)
    X = np.random.RandomState(0).normal(size=(60, 6))
    assert model.set_params(max_iter=40).fit(X).activity_.tolist() == pytest.approx([0.001, 0.1, 0.2, 0.3])


def test_rows_of_zeros_are_no_starting_components():
    X = np.zeros((100, 5))
    X[:10] = np.random.RandomState(0).normal(size=(10, 5))
    model = SpikeAndSlabCauses(6, max_iter=2, annealing=None, random_state=0).fit(X)
    assert np.linalg.norm(model.components_, axis=1).min() > 0.9


def test_a_model_of_incomplete_rows_can_be_loaded(tmp_path):
    """Also with states of the beam search, which choose among components by index."""
    X = np.random.default_rng(0).normal(size=(60, 6))
    X[3, 2] = X[10, 4] = np.nan
    model = SpikeAndSlabCauses(4, posterior="beam", max_iter=3, random_state=0).fit(X)
    model.save(tmp_path / "model.mc")
    assert_allclose(multicause.load(tmp_path / "model.mc").impute(X), model.impute(X), rtol=1e-12)
