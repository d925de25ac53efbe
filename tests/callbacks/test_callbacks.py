"""Callbacks: alone, in clones and inside a grid search; what they refuse."""

import doctest
import errno
import importlib
import os
import pickle
import signal

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.callback import ScoringMonitor
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from multicause import (
    EnergyComponents,
    FactorAnalysis,
    LinearCauses,
    MaximalCauses,
    MixtureOfGaussians,
    PrincipalComponents,
    SoftmaxNetwork,
)
from multicause.annealing import LinearCooling
from multicause.callbacks import (
    BoundMonitor,
    Checkpoint,
    EarlyStopping,
    FieldRecorder,
    IterationCallback,
    ProgressBar,
)
from multicause.datasets import make_bars

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X = np.concatenate([np.random.RandomState(0).normal(c, 1.0, (20, 3)) for c in (0, 3)])
MODEL = MixtureOfGaussians(2, max_iter=7, tol=0, random_state=0)


def test_a_monitor_sees_what_the_model_keeps():
    monitor = BoundMonitor(validation=X[:5])
    model = clone(MODEL).set_callbacks(monitor).fit(X)
    np.testing.assert_array_equal(monitor.bounds, model.lower_bounds_[1:])
    assert monitor.temperatures == [1.0] * 7
    assert monitor.validation_scores[-1] == model.score(X[:5])
    assert (np.diff(monitor.seconds) >= 0).all()


def test_early_stopping_waits_as_long_as_it_was_told():
    monitor = BoundMonitor()
    model = (
        clone(MODEL).set_params(max_iter=200).set_callbacks(monitor, EarlyStopping(patience=4, min_rise=0.01)).fit(X)
    )
    assert model.outcome_ == "stopped"
    assert len(monitor.bounds) == model.n_iter_
    # By the rule itself: the last four iterations are the first four in a row without a rise of 0.01 over the best.
    best, waited = -np.inf, []
    for bound in monitor.bounds:
        waited.append(0 if bound > best + 0.01 else (waited[-1] if waited else 0) + 1)
        best = max(best, bound) if waited[-1] == 0 else best
    assert waited[-1] == 4
    assert max(waited[:-1]) < 4


def test_early_stopping_by_rows_that_are_held_out():
    stopping = EarlyStopping(patience=2, min_rise=0.0, validation=X[::2] + 5)
    assert clone(MODEL).set_params(max_iter=100).set_callbacks(stopping).fit(X).outcome_ == "stopped"


def test_early_stopping_waits_for_the_end_of_annealing():
    hot = LinearCooling(50.0, n_iter=12, hold=0.8, settle=0.0)
    model = LinearCauses(2, annealing=hot, max_iter=40, tol=0, random_state=0)
    model.set_callbacks(EarlyStopping(patience=1, min_rise=100.0)).fit(X)
    assert model.outcome_ == "stopped"
    assert model.n_iter_ == 13  # the first cool one is a rise, the next is none


def test_a_recorder_takes_pictures_of_the_fit():
    recorder = FieldRecorder(every=3)
    model = clone(MODEL).set_callbacks(recorder).fit(X)
    assert recorder.iterations == [3, 6]
    assert [field.shape for field in recorder.fields] == [model.components_.shape] * 2
    np.testing.assert_array_equal(recorder.fields[1], clone(MODEL).set_params(max_iter=6).fit(X).components_)


def test_a_callback_speaks_of_the_last_fit_and_survives_clone_and_pickle(tmp_path):
    recorder, monitor = FieldRecorder(), BoundMonitor()
    model = clone(MODEL).set_callbacks(recorder, monitor, Checkpoint(tmp_path, seconds=0))
    clone(model).fit(X)
    clone(model).fit(X)
    assert len(recorder.fields) == len(monitor.bounds) == 7
    assert len(list(tmp_path.iterdir())) == 2
    pickle.loads(pickle.dumps(model)).fit(X)


def test_inside_a_grid_search(tmp_path):
    monitor, recorder = BoundMonitor(), FieldRecorder(every=2)
    callbacks = (monitor, recorder, EarlyStopping(patience=3, min_rise=1.0), Checkpoint(tmp_path, every=2))
    search = GridSearchCV(clone(MODEL).set_callbacks(*callbacks), {"n_components": [1, 2]}, cv=2).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_
    # The last fit is that of the best setting to all data.
    assert len(monitor.bounds) == best.n_iter_ < 7
    assert recorder.fields[0].shape == best.components_.shape
    # Each of four fits and the last one has checkpoints of its own.
    assert len({path.name.split("-")[1] for path in tmp_path.iterdir()}) == 5


def test_what_callbacks_remember_is_part_of_a_checkpoint(tmp_path):
    """Patience does not begin again, whether the checkpoint is the first callback or the last."""
    monitor = BoundMonitor()
    callbacks = [Checkpoint(tmp_path, every=2), EarlyStopping(patience=5, min_rise=0.01), monitor]
    whole = clone(MODEL).set_params(max_iter=50).set_callbacks(*callbacks).fit(X)
    bounds = monitor.bounds
    resumed = clone(whole).fit(X, resume=tmp_path)
    assert resumed.outcome_ == whole.outcome_ == "stopped"
    assert resumed.n_iter_ == whole.n_iter_
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    assert monitor.bounds == bounds
    assert (np.diff(monitor.seconds) >= 0).all()


def test_progress_bars_alone_and_around(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("rich._console", None)  # the console of the process has the width of its first use
    clone(MODEL).set_callbacks(ProgressBar()).fit(X)
    assert "MixtureOfGaussians - fit" in capsys.readouterr().out
    GridSearchCV(clone(MODEL), {"n_components": [1, 2]}, cv=2).set_callbacks(ProgressBar()).fit(X)
    shown = capsys.readouterr().out
    assert "GridSearchCV - fit" in shown
    assert shown.count("MixtureOfGaussians - fit") == 5
    assert shown.count("100%") >= 6


def test_a_progress_bar_of_a_fit_that_ctrl_c_ends_stays_where_it_is(capsys, monkeypatch):
    class Press(IterationCallback):
        def after(self, iteration):
            if iteration.number == 2:
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("rich._console", None)  # the console of the process has the width of its first use
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    clone(MODEL).set_callbacks(ProgressBar(), Press()).fit(X)
    signal.signal(signal.SIGINT, before)
    shown = capsys.readouterr().out
    assert "MixtureOfGaussians - fit" in shown
    assert "100%" not in shown


def test_a_callback_on_the_wrong_estimator_says_where_it_belongs(tmp_path):
    for callback in (BoundMonitor(), FieldRecorder(), EarlyStopping(), Checkpoint(tmp_path, every=1)):
        with pytest.raises(TypeError, match=r"Set it on the model inside: Pipeline\(model.set_callbacks\("):
            make_pipeline(StandardScaler(), clone(MODEL)).set_callbacks(callback).fit(X)


def scores_of(monitor):
    return [entry.get("score") for entry in monitor.get_logs().data if entry["task_name"] == "iteration"]


@pytest.mark.parametrize(
    "model",
    [
        MODEL,
        FactorAnalysis(2, max_iter=4, tol=0, random_state=0),
        PrincipalComponents(2),
        EnergyComponents(max_iter=4, random_state=0),
        SoftmaxNetwork(2, temperature=2.0, max_iter=3, n_init=1, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scikit_learns_monitor_logs_scores(model):
    """With and without weights; where there is no y, it scores nothing, for any estimator."""
    rows, y = np.abs(X), np.zeros(len(X))
    weights = np.random.RandomState(0).uniform(0.1, 2, len(X))
    for given in ({}, {"sample_weight": weights}):
        monitor = ScoringMonitor(scoring={"score": check_scoring(model)})
        fitted = clone(model).set_callbacks(monitor).fit(rows, y, **given)
        assert len(scores_of(monitor)) >= (1 if isinstance(model, PrincipalComponents) else 3)
        assert scores_of(monitor)[-1] == pytest.approx(fitted.score(rows, **given), rel=1e-12)
    own = ScoringMonitor(scoring={"score": lambda model, X, y: len(X)})  # takes no weights, and there are none
    clone(model).set_callbacks(own).fit(rows, y)
    assert set(scores_of(own)) == {len(rows)}
    silent = ScoringMonitor(scoring={"score": check_scoring(model)})
    clone(model).set_callbacks(silent).fit(rows)
    assert set(scores_of(silent)) == {None}


def test_callbacks_see_the_rows_and_weights_that_fit_was_given():
    class Watcher(IterationCallback):
        def on_fit_task_end(self, estimator, context, *, X=None, metadata=None):
            self.seen = X, metadata

        def after(self, iteration):
            return None

    for model in (FactorAnalysis(2, max_iter=2), MODEL, SoftmaxNetwork(2, temperature=2.0, max_iter=2)):
        rows, watcher = np.abs(X), Watcher()
        clone(model).set_callbacks(watcher).fit(rows)
        assert watcher.seen[1] is None
        clone(model).set_callbacks(watcher).fit(rows, sample_weight=np.arange(len(X)))
        np.testing.assert_array_equal(watcher.seen[0], rows)
        np.testing.assert_array_equal(watcher.seen[1]["sample_weight"], np.arange(len(X)))


def test_early_stopping_needs_a_bound():
    model = EnergyComponents(5, max_iter=2, random_state=0).set_callbacks(EarlyStopping())
    with pytest.raises(ValueError, match="EarlyStopping needs a bound, but this model has none"):
        model.fit(X)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Checkpoint(".", every=0), "every must be a whole number of iterations of at least 1; got 0"),
        (lambda: Checkpoint(".", every=1.5), "every must be a whole number"),
        (lambda: Checkpoint(".", every=True), "every must be a whole number"),
        (lambda: Checkpoint("."), "needs either every=... iterations or seconds=..."),
        (lambda: Checkpoint(".", every=1, seconds=1), "needs either every=... iterations or seconds=..."),
        (lambda: Checkpoint(".", seconds=-1), "seconds must be a number of at least 0; got -1"),
        (lambda: Checkpoint(".", seconds=np.nan), "seconds must be a number of at least 0; got nan"),
        (lambda: Checkpoint(".", every=1, max_files=0), "max_files must be a whole number of checkpoints"),
        (lambda: FieldRecorder(every=0), "every must be a whole number"),
        (lambda: EarlyStopping(patience=0), "patience must be a whole number of iterations of at least 1"),
        (lambda: EarlyStopping(min_rise=-1), "min_rise must be a number of at least 0"),
    ],
)
def test_settings_that_make_no_sense(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_no_place_for_checkpoints(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="it is not a folder. Create it first"):
        clone(MODEL).set_callbacks(Checkpoint(tmp_path / "missing", every=1)).fit(X)
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(PermissionError, match="Cannot write checkpoints to .*: permission denied"):
        clone(MODEL).set_callbacks(Checkpoint(tmp_path, every=1)).fit(X)


def test_settings_that_no_checkpoint_can_hold(tmp_path):
    with pytest.raises(TypeError, match="settings/expert cannot be saved"):
        Checkpoint(tmp_path, every=1).begin(EnergyComponents(expert=np.cosh))


def test_a_full_disk_leaves_the_checkpoints_before(tmp_path, monkeypatch):
    clone(MODEL).set_callbacks(Checkpoint(tmp_path, every=2)).fit(X)
    before = sorted(tmp_path.iterdir())

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="Cannot save to .*: there is no space left on the device"):
        clone(MODEL).set_callbacks(Checkpoint(tmp_path, every=5)).fit(X)
    assert sorted(tmp_path.iterdir()) == before
    monkeypatch.undo()
    np.testing.assert_array_equal(clone(MODEL).fit(X, resume=tmp_path).components_, clone(MODEL).fit(X).components_)


@pytest.mark.parametrize("name", ["bound_monitor", "checkpoint", "early_stopping", "field_recorder", "progress_bar"])
def test_examples(name):
    result = doctest.testmod(importlib.import_module(f"multicause.callbacks.{name}"))
    assert result.failed == 0
    assert result.attempted > 0


def test_n_iter_counts_all_iterations_that_callbacks_are_told_of():
    """With annealing="auto", attempts at repair that find nothing better are among them, but not in the history."""
    bars = make_bars(120, size=3, noise="poisson", random_state=1)
    monitor = BoundMonitor()
    model = MaximalCauses(6, noise="poisson", max_iter=150, random_state=0).set_callbacks(monitor).fit(bars.data)
    assert len(monitor.bounds) == model.n_iter_ <= 150
    assert len(model.lower_bounds_) - 1 < model.n_iter_
    # A stream goes on counting from there.
    assert model.partial_fit(bars.data).n_iter_ == len(monitor.bounds) + 1
