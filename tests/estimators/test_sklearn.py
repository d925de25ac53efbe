"""The estimators are scikit-learn estimators: its own checks, pipelines, searches, data frames and callbacks."""

import io
import warnings
from contextlib import redirect_stdout

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from multicause import (
    EnergyComponents,
    HelmholtzMachine,
    IndependentComponents,
    KMeans,
    LinearCauses,
    MaximalCauses,
    NonnegativeCauses,
    RestrictedMaximalCauses,
    SoftmaxNetwork,
    SparseCoding,
    samplers,
)
from multicause.combinations import Maximum, MaximumMagnitude
from multicause.datasets import make_bars
from multicause.engines import Local
from multicause.noises import Poisson
from multicause.posteriors import Exact, MostProbable, Preselected, RecognitionNetwork, Truncated
from multicause.priors import Bernoulli, Cauchy, Graded, Laplace, Ternary
from multicause.samplers import Hamiltonian
from multicause.updates import Coordinates, DeltaRule, Gradient, NaturalGradient
from multicause.updates.wake_sleep import WakeSleep

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
def test_scikit_learns_own_checks(estimator, few_block_sizes):
    """All checks run and pass, but for the one that needs SciPy's experimental array API to be switched on.

    The number guards against checks that vanish; it is that of scikit-learn 1.9. A network draws rows at random, and
    others if rows are repeated, so that weights are repetitions in distribution only.
    """
    weights = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    failures = dict.fromkeys(weights, "rows are drawn at random") if isinstance(estimator, SoftmaxNetwork) else {}
    results = check_estimator(estimator, on_skip=None, on_fail="raise", expected_failed_checks=failures)
    others = [r["check_name"] for r in results if r["status"] != "passed"]
    assert sorted(others) == sorted(["check_array_api_input", *failures])
    # The check that NaN is refused is not for models that allow it.
    assert len(results) >= (53 if get_tags(estimator).input_tags.allow_nan else 54)


@pytest.mark.parametrize(
    "parts",
    [{"combination": MaximumMagnitude()}, {"prior": Ternary()}, {"prior": Graded((0, 1, 2))}],
    ids=["magnitude", "ternary", "graded"],
)
def test_scikit_learns_own_checks_of_what_depends_on_parts(parts):
    """Checks of parameters, of files and of unusual data; the others depend on the estimator alone."""
    estimator = (MaximalCauses if "combination" in parts else LinearCauses)(2, **parts, **SMALL)
    names = {"check_estimators_pickle", "check_set_params", "check_fit2d_1feature", "check_transformer_general"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checks = [(own, check) for own, check in estimator_checks_generator(estimator) if name_of(check) in names]
        for own, check in checks:
            check(own)
    assert {name_of(check) for _, check in checks} == names


def name_of(check):
    """The name of a check, which may have further arguments."""
    return getattr(check, "func", check).__name__


def test_grid_search_over_a_parts_parameter(X):
    search = GridSearchCV(
        MaximalCauses(2, posterior=Exact(), **SMALL), {"n_components": [1, 2], "posterior__max_states": [64, 128]}, cv=2
    ).fit(X)
    assert search.best_params_["n_components"] == 2
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("posterior", [None, "preselected", Preselected(keep=None)], ids=["None", "name", "object"])
def test_grid_search_reaches_into_parts_however_they_are_given(posterior, X):
    model = MaximalCauses(3, posterior=posterior, **SMALL)
    search = GridSearchCV(model, {"posterior__max_active": [1, 2], "prior__shared": [True]}, cv=2).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_
    assert isinstance(best.posterior, Preselected)
    assert best.posterior.max_active == search.best_params_["posterior__max_active"] == best.posterior_.max_active
    assert best.prior == Bernoulli(shared=True)
    assert (model.posterior, model.prior) == (posterior, None)  # the search has changed a clone


NESTED = [
    (MaximalCauses(3), "posterior__max_states", Exact()),
    (MaximalCauses(12), "posterior__max_active", Preselected(keep=None)),
    (MaximalCauses(12, posterior="truncated"), "posterior__max_active", Truncated()),
    (MaximalCauses(3, noise="poisson"), "noise__floor", Poisson()),
    (MaximalCauses(3), "combination__credit", Maximum()),
    (NonnegativeCauses(3), "update__n_sweeps", Coordinates()),
    (LinearCauses(3, update="gradient"), "update__rate", Gradient()),
    (LinearCauses(3), "engine__memory_budget", Local()),
    (SparseCoding(3), "prior__scale", Laplace(scale=0.5)),
    (SparseCoding(3, prior="cauchy"), "prior__scale", Cauchy(scale=0.3)),
    (SparseCoding(3), "posterior__tol", MostProbable()),
    (SparseCoding(3), "update__rate", DeltaRule()),
    (IndependentComponents(), "update__rate", NaturalGradient()),
    (HelmholtzMachine(3), "posterior__n_samples", RecognitionNetwork()),
    (HelmholtzMachine(3), "update__rate", WakeSleep()),
    (EnergyComponents(3), "sampler__n_leapfrog", Hamiltonian()),
    (KMeans(3), "engine__memory_budget", Local()),
]


@pytest.mark.parametrize(
    ("estimator", "name", "part"), NESTED, ids=[f"{type(model).__name__}-{name}" for model, name, _ in NESTED]
)
def test_a_nested_parameter_of_a_name_or_none_is_one_of_the_part_that_would_be_used(estimator, name, part):
    """Set to its default, it changes nothing about the model that is learned."""
    role, _, own = name.partition("__")
    model = clone(estimator).set_params(**{name: getattr(part, own)})
    assert getattr(model, role) == part
    assert model.get_params()[name] == getattr(part, own)
    assert clone(model).get_params()[name] == getattr(part, own)
    if isinstance(estimator, EnergyComponents):
        assert samplers.NAMES[estimator.sampler]() == part
    elif role != "engine":
        rows = np.zeros((100, 10))
        assert model._wire(Local().load(rows)) == estimator._wire(Local().load(rows))


def test_settings_of_the_same_call_decide_what_none_stands_for():
    model = MaximalCauses(30).set_params(posterior__max_states=99, n_components=3)
    assert model.posterior == Exact(max_states=99)
    assert MaximalCauses(3).set_params(posterior__max_active=2).posterior == Preselected(None, 2, keep=None)
    both = MaximalCauses(3).set_params(posterior__max_active=2, posterior="truncated")
    assert both.posterior == Truncated(2)


@pytest.mark.parametrize(
    ("estimator", "name", "message"),
    [
        (
            MaximalCauses(3),
            "posterior__depth",
            r"posterior=None stands for Exact\(\) or Preselected\(keep=None\), which has no",
        ),
        (
            MaximalCauses(3),
            "posterior__depth",
            "its settings are max_states or candidates, keep, max_active, selection",
        ),
        (
            MaximalCauses(3, posterior="exact"),
            "posterior__max_active",
            "posterior='exact' has no 'max_active'; its set",
        ),
        (
            MaximalCauses(3, posterior="exakt"),
            "posterior__max_active",
            "Unknown posterior 'exakt'. Known: 'exact', 'trunc",
        ),
        (
            MaximalCauses(3),
            "annealing__start",
            "annealing='auto' has no parameters, so that annealing__start cannot be",
        ),
        (MaximalCauses(3, posterior=Exact()), "posterior__depth", r"Invalid parameter 'depth' for estimator Exact\(\)"),
        (KMeans(3), "posterior__hard", r"Invalid parameter 'posterior' for estimator KMeans\(n_components=3\)"),
        (
            EnergyComponents(3, expert=np.cosh),
            "expert__scale",
            "has no parameters, so that expert__scale cannot be set",
        ),
    ],
)
def test_unknown_nested_parameters_are_refused_and_change_nothing(estimator, name, message):
    before = dict(estimator.get_params())
    with pytest.raises(ValueError, match=message):
        estimator.set_params(**{name: 2})
    assert estimator.get_params() == before


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
