"""The estimators are scikit-learn estimators: its own checks, pipelines, searches, data frames and callbacks."""

import io
from contextlib import redirect_stdout

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from multicause import LinearCauses, MaximalCauses, NonnegativeCauses, RestrictedMaximalCauses, SoftmaxNetwork
from multicause.datasets import make_bars
from multicause.posteriors import Exact

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SMALL = {"max_iter": 3, "annealing": None, "random_state": 0}


@pytest.fixture(scope="module")
def X():
    return make_bars(60, size=3, noise="poisson", random_state=0).data


@pytest.mark.parametrize(
    "estimator",
    [
        MaximalCauses(2, **SMALL),
        LinearCauses(2, **SMALL),
        NonnegativeCauses(2, **SMALL),
        RestrictedMaximalCauses(2, **SMALL),
        SoftmaxNetwork(2, temperature=2.0, max_iter=2, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
def test_scikit_learns_own_checks(estimator):
    """All checks run and pass, but for the one that needs SciPy's experimental array API to be switched on.

    The number guards against checks that vanish; it is that of scikit-learn 1.9. A network sees rows one by one, and
    has no use for their weights, which spares it six checks.
    """
    results = check_estimator(estimator, on_skip=None, on_fail="raise")
    assert [r["check_name"] for r in results if r["status"] != "passed"] == ["check_array_api_input"]
    assert len(results) >= (48 if isinstance(estimator, SoftmaxNetwork) else 54)


def test_grid_search_over_a_parts_parameter(X):
    search = GridSearchCV(
        MaximalCauses(2, posterior=Exact(), **SMALL), {"n_components": [1, 2], "posterior__max_states": [64, 128]}, cv=2
    ).fit(X)
    assert search.best_params_["n_components"] == 2
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_fit_leaves_the_constructors_arguments_alone(X):
    posterior = Exact(max_states=64)
    model = MaximalCauses(2, posterior=posterior, **SMALL).fit(X)
    assert model.posterior is posterior
    assert model.posterior_ is not posterior
    assert model.posterior_ == posterior
    assert clone(model).get_params()["posterior"].max_states == 64


def test_data_frames_in_and_out(X):
    frame = pd.DataFrame(X, columns=[f"pixel{d}" for d in range(X.shape[1])], index=np.arange(len(X)) + 100)
    model = MaximalCauses(2, **SMALL).set_output(transform="pandas").fit(frame)
    causes = model.transform(frame)
    assert list(causes.columns) == ["maximalcauses0", "maximalcauses1"] == list(model.get_feature_names_out())
    assert list(causes.index) == list(frame.index)
    assert list(model.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(frame.rename(columns={"pixel0": "other"}))


def test_in_a_pipeline(X):
    pipeline = make_pipeline(FunctionTransformer(np.sqrt), LinearCauses(2, **SMALL))
    assert pipeline.fit_transform(X).shape == (len(X), 2)
    assert np.isfinite(pipeline.score(X))


def test_progress_bar_of_scikit_learn(X, capsys):
    model = MaximalCauses(2, **SMALL).set_callbacks(ProgressBar())
    model.fit(X)
    assert "MaximalCauses" in capsys.readouterr().out


class Recorder:
    """A callback that collects the bounds of the half-fitted models, and may stop the fit."""

    def __init__(self, stop_after=None):
        self.scores, self.events, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.events.append("begin")

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        if context.task_name == "iteration":
            self.scores.append(fitted_estimator.score(X))
            assert fitted_estimator.n_iter_ == len(self.scores)
            return self.stop_after is not None and len(self.scores) >= self.stop_after
        return False

    def teardown(self, estimator, context):
        self.events.append("teardown")


def test_callbacks_see_every_iteration_with_a_working_model(X):
    recorder = Recorder()
    model = MaximalCauses(2, **SMALL).set_callbacks(recorder).fit(X)
    assert len(recorder.scores) == model.n_iter_ == 3
    assert recorder.events[0] == "setup"
    assert recorder.events[-1] == "teardown"
    np.testing.assert_allclose(recorder.scores, model.lower_bounds_[1:], rtol=1e-10)


def test_a_callback_can_stop_the_fit(X):
    model = MaximalCauses(2, **(SMALL | {"max_iter": 50, "tol": 0.0})).set_callbacks(Recorder(stop_after=4)).fit(X)
    assert model.outcome_ == "stopped"
    assert model.n_iter_ == 4
    assert not model.converged_
    assert np.isfinite(model.transform(X)).all()


def test_verbose_says_iteration_temperature_and_bound(X):
    text = io.StringIO()
    with redirect_stdout(text):
        model = MaximalCauses(2, verbose=1, **SMALL).fit(X)
    lines = text.getvalue().splitlines()
    assert len(lines) == model.n_iter_
    assert lines[0].startswith("[MaximalCauses] iteration    1  temperature    1.000  bound ")
    assert float(lines[0].split()[-1]) == pytest.approx(model.lower_bounds_[1], abs=1e-6)
