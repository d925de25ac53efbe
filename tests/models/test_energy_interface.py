"""EnergyComponents as an estimator: scikit-learn's checks, weights, units, precision, files, callbacks, compilation."""

import io
import pickle
import warnings
from contextlib import redirect_stdout

import jax.monitoring
import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.utils.estimator_checks import check_estimator

import multicause
from multicause import EnergyComponents, load
from multicause.energies import FunctionExpert, Student
from multicause.engines import Local
from multicause.persistence import ModelFileError
from multicause.samplers import Hamiltonian
from multicause.samplers.annealed import LogPartition
from tests.energies.test_energies import soft_size
from tests.solvers.mixtures import mixture

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
FEW = {"max_iter": 20, "random_state": 0}
EXACT = FEW | {"sampler": "exact"}


def test_scikit_learns_own_checks(few_block_sizes):
    """All hold but the equality of weighted and repeated rows, which random mini-batches have only on average.

    Without whitening, because some of the checks have fewer rows than columns, which whitening refuses.
    """
    weights = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    results = check_estimator(
        EnergyComponents(2, sampler="exact", whiten=None, batch_size=10, max_iter=2, random_state=0),
        expected_failed_checks=dict.fromkeys(weights, "mini-batches are random"),
        on_skip=None,
        on_fail="raise",
    )
    others = {"check_array_api_input", *weights}
    assert {r["check_name"] for r in results if r["status"] != "passed"} == others
    assert len(results) >= 54


def test_weights_count_like_repetitions(mixed):
    X = mixed[0][:60]
    weights = np.random.RandomState(0).randint(0, 4, len(X))
    settings = {"sampler": "exact", "batch_size": None, **FEW}
    weighted = EnergyComponents(**settings).fit(X, sample_weight=weights)
    repeated = EnergyComponents(**settings).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-8)
    # In mini-batches, rows of weight zero are never drawn.
    Y = X.copy()
    Y[:30] += 100
    half = EnergyComponents(batch_size=20, **EXACT).fit(Y, sample_weight=np.arange(60) >= 30)
    alone = EnergyComponents(batch_size=20, **EXACT).fit(Y[30:])
    np.testing.assert_allclose(half.components_, alone.components_, rtol=1e-8)


def test_whitening_is_that_of_scikit_learn(mixed):
    X, _, _ = mixed
    model = EnergyComponents(n_whitened=3, **EXACT).fit(X)
    expected = PCA(3, whiten=True).fit(X)
    scale = np.sqrt(len(X) / (len(X) - 1))  # scikit-learn divides by n − 1
    np.testing.assert_allclose(
        np.abs((X - model.mean_) @ model._problem.whitening.matrix.T),
        scale * np.abs(expected.transform(X)),
        rtol=1e-6,
        atol=1e-8,
    )
    zca = EnergyComponents(whiten="zca", **EXACT).fit(X)._problem.whitening.matrix
    np.testing.assert_allclose(zca, zca.T, atol=1e-10)
    np.testing.assert_allclose(np.cov((X @ zca.T).T, bias=True), np.eye(4), atol=1e-8)


@pytest.mark.parametrize("c", [1e-6, 1e-3, 1e6])
@pytest.mark.parametrize("whiten", ["pca", None])
def test_units_do_not_matter(mixed, whiten, c):
    """Filters × 1/c, scores − D log c, the same outcome; also for chains, whose steps are relative to the data.

    Rounding may turn a rejection of a chain into an acceptance, so that there are only a few updates.
    """
    X = mixed[0][:500]
    for settings in ({"sampler": "exact", "max_iter": 200}, {"sampler": Hamiltonian(3), "max_iter": 40}):
        one, other = (EnergyComponents(whiten=whiten, random_state=0, **settings).fit(own) for own in (X, c * X))
        np.testing.assert_allclose(other.components_ * c, one.components_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(other.score_samples(c * X), one.score_samples(X) - 4 * np.log(c), rtol=1e-7)
        assert other.outcome_ == one.outcome_
        assert other.step_size_ == pytest.approx(one.step_size_)


@pytest.mark.parametrize(
    "settings",
    [{"sampler": "exact"}, {"n_components": 6, "expert": "student", "layers": (3,), "sampler": "metropolis"}],
)
def test_the_dtype_is_kept_and_blocks_and_order_do_not_matter(mixed, settings):
    X = mixed[0][:300]
    whole = EnergyComponents(batch_size=50, **FEW, **settings).fit(X)
    small = EnergyComponents(batch_size=50, engine=Local(memory_budget="64KiB"), **FEW, **settings)
    small.fit(np.asfortranarray(X))
    np.testing.assert_allclose(small.components_, whole.components_, rtol=1e-9)
    np.testing.assert_allclose(small.energy(X), whole.energy(X), rtol=1e-9)
    single = EnergyComponents(batch_size=50, **FEW, **settings).fit(X.astype(np.float32))
    for name in ("components_", "mixing_", "mean_"):
        assert getattr(single, name).dtype == np.float32
        if settings.get("sampler") == "exact":  # random numbers differ between precisions
            np.testing.assert_allclose(getattr(single, name), getattr(whole, name), rtol=0.02, atol=1e-3)
    for method in ("transform", "energy", "score_samples"):
        assert getattr(single, method)(X).dtype == np.float32


def test_rows_on_disk_are_learned_from_a_sample(tmp_path):
    X = mixture(30_000, 4)[0].astype(np.float32)
    np.save(tmp_path / "rows.npy", X)
    stored, small = np.load(tmp_path / "rows.npy", mmap_mode="r"), Local(memory_budget="256KiB")
    settings = {"sampler": "exact", "max_iter": 300, "random_state": 0}
    with pytest.warns(UserWarning, match=r"holds a random sample of 16,384 rows, of 30,000"):
        there = EnergyComponents(engine=small, **settings).fit(stored)
    here = EnergyComponents(**settings).fit(X)
    np.testing.assert_allclose(there.transform(stored), there.transform(X), atol=1e-4)
    assert there.score(stored) == pytest.approx(here.score(X), abs=0.5)


def test_a_fit_is_repeatable_and_leaves_its_arguments_alone(mixed):
    X, expert = mixed[0][:300], FunctionExpert(soft_size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [EnergyComponents(expert=expert, sampler="metropolis", **FEW).fit(X) for _ in range(2)]
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
    assert models[0].expert is expert
    assert models[0].expert_ == expert


@pytest.mark.parametrize(
    "settings",
    [
        {"persistent": True, "sampler": Hamiltonian(2)},
        {"n_components": 6, "expert": Student(exponent=2.0), "layers": (3,), "sampler": "metropolis"},
    ],
)
def test_a_saved_model_goes_on_as_if_nothing_had_happened(mixed, tmp_path, settings):
    X = mixed[0][:500]
    model = EnergyComponents(**FEW, **settings).fit(X)
    if model.log_partition_ is None:
        model.log_partition_ = LogPartition(1.5, 0.1, 10, 0)
    model.save(tmp_path / "model")
    loaded = multicause.load(tmp_path / "model")
    copied = pickle.loads(pickle.dumps(model))
    for other in (loaded, copied):
        np.testing.assert_array_equal(other.transform(X), model.transform(X))
        np.testing.assert_array_equal(other.score_samples(X), model.score_samples(X))
        assert other.log_partition_ == model.log_partition_
        assert other.get_params().keys() == model.get_params().keys()
        np.testing.assert_array_equal(other.contrasts_, model.contrasts_)
    np.testing.assert_array_equal(loaded.partial_fit(X).components_, model.partial_fit(X).components_)
    assert model.log_partition_ is None or model.log_partition_.standard_error == 0  # it belonged to older filters


def test_a_function_is_saved_by_its_name_and_given_when_the_file_is_read(mixed, tmp_path):
    model = EnergyComponents(expert=soft_size, sampler="metropolis", **FEW).fit(mixed[0])
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"the function 'soft_size' of .*load\(path, parts=\[soft_size\]\)"):
        load(tmp_path / "model")
    loaded = load(tmp_path / "model", parts=[soft_size])
    np.testing.assert_array_equal(loaded.energy(mixed[0]), model.energy(mixed[0]))
    nameless = EnergyComponents(expert=lambda h: soft_size(h), sampler="metropolis", **FEW).fit(mixed[0])
    with pytest.raises(TypeError, match="settings/expert cannot be saved: .* a lambda has none. Define it with def"):
        nameless.save(tmp_path / "model")


def test_a_second_fit_compiles_nothing(mixed):
    X = mixed[0][:300]
    compiled = []

    def use(seed, n_rows):
        model = EnergyComponents(2, sampler="metropolis", max_iter=7, random_state=seed).fit(X[:n_rows] + seed)
        model.transform(X)
        model.score(X)
        model.sample(4, random_state=0)

    use(0, 300)
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, duration, **_: compiled.append(event) if "backend_compile" in event else None
    )
    try:
        use(1, 300)
        use(2, 299)  # one row less, as in another fold of a cross-validation
        EnergyComponents(2, sampler="metropolis", max_iter=7, learning_rate=0.1, weight_decay=0.1).fit(X)
        assert compiled == []
        EnergyComponents(3, sampler="exact", max_iter=2).fit(X)
        assert compiled
    finally:
        jax.monitoring.clear_event_listeners()


class Stop:
    """A callback that scores the half-fitted model and stops."""

    def __init__(self):
        self.scores = []

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        if context.task_name == "iteration":
            self.scores.append(fitted_estimator.score(X))
        return len(self.scores) >= 3

    def teardown(self, estimator, context):
        pass


def test_callbacks_and_verbose(mixed):
    stop, text = Stop(), io.StringIO()
    model = EnergyComponents(max_iter=500, sampler="exact", verbose=1, random_state=0).set_callbacks(stop)
    with redirect_stdout(text):
        model.fit(mixed[0])
    assert model.outcome_ == "stopped"
    assert model.n_iter_ == 15  # three rounds of five updates
    assert stop.scores[-1] == pytest.approx(model.score(mixed[0]))
    lines = text.getvalue().splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("[EnergyComponents] update      5  contrast")
