"""Every loop can be saved, stopped and taken up again, and then ends as if it had never been interrupted."""

import os
import shutil
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import multicause
from multicause import (
    EnergyComponents,
    FactorAnalysis,
    HelmholtzMachine,
    IndependentComponents,
    KMeans,
    LinearCauses,
    MaximalCauses,
    MixtureOfGaussians,
    MixtureOfPoissons,
    NoisyOrCauses,
    NonnegativeCauses,
    OwnCauses,
    PrincipalComponents,
    RestrictedMaximalCauses,
    SoftmaxNetwork,
    SparseCoding,
    SpikeAndSlabCauses,
    TruncatedAutoencoder,
)
from multicause.annealing import LinearCooling
from multicause.callbacks import Checkpoint, IterationCallback
from multicause.datasets import make_bars
from multicause.engines import Local
from multicause.persistence import ModelFileError, container, newest_checkpoint
from multicause.posteriors import Beam, Evolved, Preselected, Truncated
from multicause.runtime.interruption import STOPPING

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
COUNTS = make_bars(60, size=3, value=6.0, noise="poisson", random_state=0).data
IMAGES = make_bars(60, size=3, value=6.0, noise="gaussian", noise_scale=1.0, random_state=0).data
BINARY = make_bars(60, size=3, value=1.0, noise=None, random_state=0).data
SOURCES = np.random.RandomState(0).laplace(size=(80, 3)) @ np.random.RandomState(1).normal(size=(3, 3))
CUT = {"posterior": Preselected(3, 2, keep=0.9), "annealing": LinearCooling(5.0, n_iter=8, component_noise=0.05)}
SEED = {"random_state": 1}
# The third cause is dead from the beginning.
DEAD = np.abs(IMAGES[:3]) * [[1], [1], [0]]


def squared_error(parameters, states, rows):
    """The log joint of a user's model."""
    return -jnp.sum((rows[:, None] - states @ parameters["components"]) ** 2, axis=-1)


def two_rows(X, n_components, random):
    """Its first parameters."""
    return {"components": X[random.choice(len(X), n_components)]}


FUNCTIONS = [squared_error, two_rows]
# All estimators and all loops: phases of a search, a data cut, noise on components, several starts, repair
# with a cause that comes back.
PROBLEMS = {
    "search": (MaximalCauses(3, noise="poisson", max_iter=60, **SEED), COUNTS),
    "search with two posteriors": (MaximalCauses(4, posterior=Truncated(2), max_iter=45, n_init=2, **SEED), IMAGES),
    "cut and starts": (LinearCauses(4, max_iter=10, n_init=2, **CUT, **SEED), IMAGES),
    "repair": (NonnegativeCauses(3, init=DEAD, annealing=None, repair=True, max_iter=60, **SEED), IMAGES),
    "restricted": (RestrictedMaximalCauses(3, annealing=None, max_iter=6, **SEED), COUNTS),
    "restricted, without settings": (RestrictedMaximalCauses(3, max_iter=12, n_init=2, **SEED), COUNTS),
    "network": (SoftmaxNetwork(3, temperature=2.0, max_iter=3, n_init=2, **SEED), COUNTS),
    "mixture": (MixtureOfGaussians(3, covariance="full", max_iter=6, **SEED), IMAGES),
    "counts": (MixtureOfPoissons(3, max_iter=6, **SEED), COUNTS),
    "k-means": (KMeans(3, max_iter=6, **SEED), IMAGES),
    "replacement": (SpikeAndSlabCauses(6, posterior=Beam(2, 2), max_iter=40, **SEED), IMAGES),
    "noisy-or": (NoisyOrCauses(3, max_iter=20, **SEED), BINARY),
    "evolved": (LinearCauses(4, posterior=Evolved(6, n_children=8), annealing=None, max_iter=6, **SEED), IMAGES),
    "evolved in blocks": (
        MaximalCauses(4, posterior=Evolved(6), annealing=None, max_iter=5, engine=Local(memory_budget="200KB"), **SEED),
        IMAGES,
    ),
    "levels": (LinearCauses(3, prior="ternary", annealing=None, repair=True, max_iter=20, **SEED), IMAGES),
    "factors": (FactorAnalysis(2, max_iter=6, **SEED), IMAGES),
    "axes": (PrincipalComponents(2, **SEED), IMAGES),
    "sparse": (SparseCoding(4, batch_size=20, max_iter=6, **SEED), IMAGES),
    "independent": (IndependentComponents(max_iter=8, tol=1e-12, **SEED), SOURCES),
    "helmholtz": (HelmholtzMachine(3, max_iter=6, n_init=2, **SEED), BINARY),
    "helmholtz-adam": (HelmholtzMachine(3, max_iter=6, n_init=2, optimizer="adam", **SEED), BINARY),
    "own": (OwnCauses(*FUNCTIONS, 4, posterior=Evolved(6), max_iter=4, batch_size=25, **SEED), IMAGES),
    "decoder": (TruncatedAutoencoder(4, posterior=Evolved(6), max_iter=4, batch_size=25, **SEED), IMAGES),
    "energies": (EnergyComponents(persistent=True, batch_size=20, max_iter=12, **SEED), SOURCES),
}


class Interrupt(IterationCallback):
    """Presses Ctrl-C after some iterations."""

    def __init__(self, *numbers):
        self.numbers = numbers

    def after(self, iteration):
        for _ in range(self.numbers.count(iteration.number)):
            os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(autouse=True)
def _ctrl_c_as_usual():
    """Processes in the background of a shell ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module", params=PROBLEMS)
def problem(request, tmp_path_factory):
    """A model, its data, the whole fit, and the checkpoints of all its iterations, oldest first."""
    model, X = PROBLEMS[request.param]
    folder = tmp_path_factory.mktemp("checkpoints")
    fitted = clone(model).set_callbacks(Checkpoint(folder, every=1, max_files=1000)).fit(X)
    return model, X, fitted, sorted(folder.iterdir())


def assert_same(one, other):
    """Two fits are the same in every bit that they keep."""
    for name, value in vars(one).items():
        if name.endswith("_") and isinstance(value, np.ndarray | float | int | str):
            np.testing.assert_array_equal(getattr(other, name), value, err_msg=name)
    leaves, others = jax.tree.leaves(one._state()), jax.tree.leaves(other._state())
    assert len(leaves) == len(others)
    for leaf, counterpart in zip(leaves, others, strict=True):
        if not isinstance(leaf, multicause.parts.Part):
            np.testing.assert_array_equal(leaf, counterpart)


def test_every_public_estimator_is_here():
    models = {name for name in multicause.__all__ if isinstance(getattr(multicause, name), type)}
    assert {type(model).__name__ for model, _ in PROBLEMS.values()} == models


def test_a_resumed_fit_ends_as_if_it_had_not_been_interrupted(problem, seed):
    model, X, whole, checkpoints = problem
    chosen = np.random.RandomState(seed).choice(len(checkpoints), min(3, len(checkpoints)), replace=False)
    for number in sorted({*chosen, len(checkpoints) - 1}):
        assert_same(whole, clone(model).fit(X, resume=checkpoints[number]))


def test_saved_and_loaded(problem, tmp_path):
    _, X, model, _ = problem
    model.save(tmp_path / "model")
    loaded = multicause.load(tmp_path / "model", parts=FUNCTIONS)
    assert_same(model, loaded)
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    np.testing.assert_array_equal(loaded.score_samples(X), model.score_samples(X))
    if hasattr(model, "sample"):  # a log joint alone cannot be sampled
        np.testing.assert_array_equal(loaded.sample(3, random_state=0)[0], model.sample(3, random_state=0)[0])
    again = multicause.load(tmp_path / "model", parts=FUNCTIONS)
    assert_same(again.partial_fit(X), loaded.partial_fit(X))


def test_a_checkpoint_is_a_model(problem, tmp_path):
    _, X, whole, checkpoints = problem
    model = multicause.load(checkpoints[-1], parts=FUNCTIONS)
    assert model.outcome_ == "stopped"
    assert not model.converged_
    assert model.transform(X).shape == whole.transform(X).shape
    assert len(model.lower_bounds_) == len(checkpoints)  # of all starts, where they learn one after the other
    assert np.isfinite(model.partial_fit(X).transform(X)).all()
    model.save(tmp_path / "model")


def test_ctrl_c_ends_with_a_model_and_a_checkpoint_from_which_the_fit_goes_on(problem, tmp_path, capsys):
    model, X, whole, _ = problem
    if isinstance(model, PrincipalComponents):
        pytest.skip("it has one iteration, after which there is nothing to stop")
    checkpoints = [tmp_path / "often", tmp_path / "seldom"]
    for folder, every in zip(checkpoints, (1, 1000), strict=True):
        folder.mkdir()
        stopped = clone(model).set_callbacks(Interrupt(2), Checkpoint(folder, every=every)).fit(X)
        assert newest_checkpoint(folder).name.endswith("-0000002.checkpoint")
        assert capsys.readouterr().err == f"{STOPPING}\n"
        assert_same(whole, clone(model).fit(X, resume=folder))
    assert stopped.outcome_ == "stopped"
    assert not stopped.converged_
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    stopped.save(tmp_path / "model")
    loaded = multicause.load(tmp_path / "model", parts=FUNCTIONS)
    np.testing.assert_array_equal(loaded.transform(X), stopped.transform(X))
    with pytest.raises(KeyboardInterrupt):
        clone(model).set_callbacks(Interrupt(2, 2)).fit(X)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# ------------------------------------------------------------------------------------------- one model is enough


MIXTURE, X = MixtureOfGaussians(3, max_iter=8, tol=0, random_state=1), IMAGES


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixture")
    clone(MIXTURE).set_callbacks(Checkpoint(folder, every=3)).fit(X)
    return folder


def test_ctrl_c_ends_a_search_and_not_one_of_its_fits():
    model = clone(MIXTURE).set_callbacks(Interrupt(2))
    with pytest.raises(KeyboardInterrupt):
        GridSearchCV(model, {"n_components": [2, 3]}, cv=2).fit(X)


def test_random_states_that_are_no_numbers(tmp_path):
    """With a seed from nowhere, or a generator that has gone on, the fit goes on with its own random numbers."""
    model = HelmholtzMachine(3, max_iter=4, tol=0)
    for random_state in (None, np.random.RandomState(5)):
        one = model.set_params(random_state=random_state).set_callbacks(Checkpoint(tmp_path, every=2)).fit(BINARY)
        global_state = np.random.mtrand._rand.get_state(legacy=False)
        assert_same(one, clone(model).fit(BINARY, resume=sorted(tmp_path.iterdir())[0]))
        np.testing.assert_equal(np.random.mtrand._rand.get_state(legacy=False), global_state)
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()


def test_two_checkpoints_are_kept_and_the_newest_is_taken(checkpoints):
    names = sorted(path.name for path in checkpoints.iterdir())
    assert [name.rpartition("-")[2] for name in names] == ["0000003.checkpoint", "0000006.checkpoint"]
    assert newest_checkpoint(checkpoints).name == names[-1]


def test_a_folder_that_other_fits_share(checkpoints, tmp_path):
    folder = shutil.copytree(checkpoints, tmp_path / "shared")
    time.sleep(0.01)
    clone(MIXTURE).set_params(n_components=2).set_callbacks(Checkpoint(folder, every=8)).fit(X)
    assert len(list(folder.iterdir())) == 3
    assert_same(clone(MIXTURE).fit(X), clone(MIXTURE).fit(X, resume=folder))


def test_a_fit_that_begins_again_in_the_same_folder(checkpoints, tmp_path):
    folder = shutil.copytree(checkpoints, tmp_path / "again")
    time.sleep(0.01)
    callback = Checkpoint(folder, every=2, max_files=1)
    clone(MIXTURE).set_params(verbose=1).set_callbacks(callback, Interrupt(2)).fit(X)
    assert callback.path.name.endswith("-0000002.checkpoint")
    assert list(folder.iterdir()) == [callback.path] == [newest_checkpoint(folder)]


def test_a_damaged_checkpoint_gives_way_to_the_one_before(checkpoints, tmp_path):
    folder = shutil.copytree(checkpoints, tmp_path / "damaged")
    newest = newest_checkpoint(folder)
    newest.write_bytes(newest.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="truncated or damaged.*Using the previous checkpoint instead") as caught:
        resumed = clone(MIXTURE).fit(X, resume=folder)
    assert {record.filename for record in caught} == {__file__}
    assert_same(clone(MIXTURE).fit(X), resumed)


def test_what_a_killed_process_left_is_cleared_away(checkpoints, tmp_path, recwarn):
    folder = shutil.copytree(checkpoints, tmp_path / "left")
    left = folder / f".saving-0123-{newest_checkpoint(folder).name}"
    left.write_bytes(b"half")
    clone(MIXTURE).set_callbacks(Checkpoint(folder, every=4)).fit(X, resume=folder)
    assert not left.exists()
    assert not [warning for warning in recwarn if "checkpoint" in str(warning.message)]


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (KMeans(3), X, "is a checkpoint of MixtureOfGaussians, not of KMeans"),
        (clone(MIXTURE).set_params(tol=1.0, max_iter=9), X, "other settings: max_iter, tol differ"),
        (MIXTURE, X + 1, "a fit to other data: X, its dtype or the weights differ"),
        (MIXTURE, X.astype(np.float32), "a fit to other data"),
    ],
)
def test_another_fit_is_refused(checkpoints, model, data, message):
    for resume in (checkpoints, newest_checkpoint(checkpoints)):
        with pytest.raises(ValueError, match=message):
            clone(model).fit(data, resume=resume)


def test_other_weights_are_refused(checkpoints):
    with pytest.raises(ValueError, match="a fit to other data"):
        clone(MIXTURE).fit(X, sample_weight=np.arange(len(X)) + 1, resume=checkpoints)


def test_nothing_to_resume(tmp_path, checkpoints, monkeypatch):
    with pytest.raises(FileNotFoundError, match="There is no checkpoint in .*Leave out resume to start over"):
        clone(MIXTURE).fit(X, resume=tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        clone(MIXTURE).fit(X, resume=tmp_path / "missing")
    clone(MIXTURE).fit(X).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="is a fitted model, not a checkpoint"):
        clone(MIXTURE).fit(X, resume=tmp_path / "model")
    monkeypatch.setattr("multicause.persistence.checkpoints.__version__", "9.0")
    with pytest.raises(ModelFileError, match=r"was written by multicause .*, but this is 9.0"):
        clone(MIXTURE).fit(X, resume=checkpoints)


def test_a_forged_checkpoint(checkpoints, tmp_path):
    path = shutil.copy(newest_checkpoint(checkpoints), tmp_path / "forged")
    header, arrays = container.read(path)
    states = header["checkpoint"]["fields"]["record"]["fields"]["states"]["tuple"]
    states[0] = {"dict": {}}
    container.write(path, header, arrays)
    with pytest.raises(ValueError, match="belongs to another learning algorithm: expected a state LoopState, got dict"):
        clone(MIXTURE).fit(X, resume=path)
    states[0] = {"record": "os:system", "fields": {}}
    container.write(path, header, arrays)
    with pytest.raises(ModelFileError, match="is not a valid checkpoint: 'os:system' is not a record of multicause"):
        clone(MIXTURE).fit(X, resume=path)


LONG = """
import sys
import numpy as np
from multicause import LinearCauses
from multicause.callbacks import Checkpoint

model = LinearCauses(3, annealing=None, tol=0, max_iter=1000, random_state=1)
model.set_callbacks(Checkpoint(sys.argv[2], every=1)).fit(np.load(sys.argv[1]))
"""


def test_killed(tmp_path, seed):
    """SIGKILL, wherever it hits: the newest checkpoint is whole, and the resumed fit is that of no interruption."""
    np.save(tmp_path / "X.npy", IMAGES)
    model = LinearCauses(3, annealing=None, tol=0, max_iter=1000, random_state=1)
    whole = clone(model).fit(IMAGES)
    for moment, pause in enumerate(np.random.RandomState(seed).uniform(0, 0.3, size=2)):
        folder = tmp_path / f"run {moment}"
        folder.mkdir()
        with subprocess.Popen([sys.executable, "-c", LONG, tmp_path / "X.npy", folder]) as process:
            while newest_checkpoint(folder) is None and process.poll() is None:
                time.sleep(0.01)
            time.sleep(pause)
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert np.isfinite(multicause.load(newest_checkpoint(folder)).transform(IMAGES)).all()
        assert_same(whole, clone(model).fit(IMAGES, resume=folder))
