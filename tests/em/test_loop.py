"""The EM loop: threads, calls of several steps and programs do not change what is learned."""

import jax
import jax.monitoring
import numpy as np
import pytest

from multicause import LinearCauses, MaximalCauses
from multicause.annealing import LinearCooling
from multicause.arrays import double_precision, kernels, largest_with_share, over_active, starts
from multicause.callbacks import BoundMonitor, IterationCallback
from multicause.datasets import make_bars
from multicause.engines import Local
from multicause.inference import arrange
from multicause.posteriors import Preselected
from multicause.priors import truncation
from multicause.search.variants import falls_without
from tests.oracles import enumeration

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class EveryIteration(IterationCallback):
    """Looks at the model after each iteration."""

    def __init__(self):
        self.bounds = []

    def after(self, iteration):
        self.bounds.append(iteration.bound)
        assert iteration.model().components_.shape == (4, 9)


def bars(n=60, seed=0, **settings):
    return make_bars(n, size=3, noise="poisson", random_state=seed, **settings).data


MODELS = {
    "search": MaximalCauses(4, noise="poisson", random_state=0, max_iter=60),
    "several starts": LinearCauses(4, annealing=LinearCooling(3.0, n_iter=8), n_init=3, max_iter=20, random_state=0),
    "data cut": LinearCauses(4, posterior=Preselected(3, 2), annealing=None, n_init=2, max_iter=40, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_threads_and_steps_of_a_call_change_nothing(name):
    model, X = MODELS[name], bars()
    one = model.set_params(engine=Local(n_jobs=1)).fit(X)
    monitor = EveryIteration()
    others = [
        MODELS[name].__class__(**{**model.get_params(deep=False), "engine": Local(n_jobs=3)}),
        MODELS[name].__class__(**model.get_params(deep=False)).set_callbacks(monitor),
    ]
    for other in others:
        other.fit(X)
        np.testing.assert_array_equal(other.components_, one.components_)
        np.testing.assert_array_equal(other.lower_bounds_, one.lower_bounds_)
        np.testing.assert_array_equal(other.temperatures_, one.temperatures_)
        assert (other.n_iter_, other.outcome_) == (one.n_iter_, one.outcome_)
    assert len(monitor.bounds) == one.n_iter_


def test_a_callback_that_wants_bounds_only_gets_those_of_every_iteration():
    X, every, bounds_only = bars(), EveryIteration(), BoundMonitor()
    for callback in (every, bounds_only):
        LinearCauses(4, random_state=0, max_iter=60).set_callbacks(callback).fit(X)
    assert bounds_only.bounds == every.bounds


def compilations():
    """Return a list to which the name of every program that is compiled is added."""
    names = []

    def listen(event, seconds, **details):
        if event.endswith("backend_compile_duration"):
            names.append(details.get("fun_name"))

    jax.monitoring.register_event_duration_secs_listener(listen)
    return names


def test_a_default_fit_needs_few_programs_and_similar_data_none():
    """Two loops (annealing and exact states), their steps over threads, first facts, what repair asks, and keys."""
    X, names = bars(500), compilations()
    jax.clear_caches()
    model = MaximalCauses(6, noise="poisson", random_state=0).fit(X)
    loops = [name for name in names if "_run_steps" in str(name)]
    assert len(loops) == 2
    assert len(names) <= 20
    names.clear()
    model.transform(X)
    names.clear()
    model.fit(X[:499])  # another number of rows
    model.fit(bars(500, seed=1)[3:])  # another fold
    model.set_params(random_state=1, tol=1e-4, max_iter=300).fit(X)  # other numbers
    model.transform(X[:490])
    assert names == []
    model.partial_fit(X)
    names.clear()
    model.partial_fit(X[:490])
    assert names == []


def test_the_cause_that_is_missed_least():
    """Against the evidence of models that lack one cause, by enumeration of all states."""
    X = bars(80)
    model = MaximalCauses(5, noise="poisson", annealing=None, max_iter=5, tol=0.0, random_state=3).fit(X)

    def evidence(which):
        parameters = model.components_[which], model.activity_[which]
        return enumeration.log_evidence(enumeration.log_joint(X, *parameters, "max", "poisson", None)).sum()

    without = [evidence([h for h in range(5) if h != lost]) for lost in range(5)]
    with double_precision():
        data = arrange(model._model, Local().load(X), 5)
        order = np.argsort(falls_without(model._model, data, model._parameters)).tolist()
    assert order == list(np.argsort(without)[::-1])


@pytest.mark.parametrize("on_accelerator", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_value_that_a_share_of_all_weight_reaches(dtype, on_accelerator, monkeypatch):
    monkeypatch.setattr(kernels, "one_by_one", lambda: not on_accelerator)
    # A function of this test alone, so that no program of another kind of device is found.
    find = jax.jit(lambda *arrays: largest_with_share(*arrays))
    random = np.random.RandomState(0)
    for trial in range(20):
        values = (random.normal(size=37) * 10.0 ** random.randint(-3, 4)).astype(dtype)
        weights = (random.uniform(size=37) if trial % 2 else np.ones(37)).astype(dtype)
        share = random.uniform(0.02, 1)
        order = np.argsort(values)[::-1]
        reached = np.cumsum(weights[order].astype(float)) >= share * weights.sum(dtype=float) * (1 - 1e-12)
        with double_precision():
            found = find(values, weights, np.asarray(share))
        assert np.asarray(found) == values[order[np.argmax(reached)]]


@pytest.mark.parametrize("n_causes", [1, 3, 8])
def test_truncated_activities_on_accelerators_are_those_of_a_cpu(n_causes, monkeypatch):
    random, most = np.random.RandomState(0), min(3, n_causes)

    def both(activity):
        return truncation.log_mass(activity, most), truncation.untruncated(0.8 * activity, activity, most)

    with double_precision():
        activity = random.uniform(0.01, 0.6, n_causes)
        cpu = jax.jit(both)(activity)
        monkeypatch.setattr(truncation, "one_by_one", lambda: False)
        # Another function, so that the program of a CPU is not found.
        other = jax.jit(lambda activity: both(activity))(activity)
    for a, b in zip(cpu, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_only_active_starts_are_worked_on(at_once, monkeypatch):
    monkeypatch.setattr(starts, "starts_at_once", lambda n_starts: at_once)
    values = np.arange(10, dtype=np.float32).reshape(5, 2)

    @jax.jit
    def work_on(active, values):
        return over_active(lambda row: (row * 2, row.sum()), active, values)

    for active in ([1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]):
        found = work_on(np.array(active, dtype=bool), values)
        np.testing.assert_array_equal(found[0], 2 * values * np.array(active)[:, None])
        np.testing.assert_array_equal(found[1], values.sum(axis=1) * np.array(active))
