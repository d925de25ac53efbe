"""The automatic search as a whole: the number of its iterations, and when its last phase repairs again."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from multicause import LinearCauses, MaximalCauses
from multicause.datasets import make_bars
from multicause.engines import Local
from multicause.posteriors import Preselected
from multicause.search import automatic
from multicause.search.phases import Search
from multicause.search.search_models import choose_models
from multicause.search.search_plan import SearchPlan


def rows_of_weight(n_weighted, weight):
    return SimpleNamespace(n_features=25, n_weighted=n_weighted, overview=SimpleNamespace(weight=weight))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [1, 2, 4, 30])
def test_all_stages_of_learning_together_take_no_more_than_max_iter(max_iter):
    X = make_bars(100, size=4, noise="gaussian", random_state=0).data
    assert MaximalCauses(8, posterior=Preselected(3, 2), max_iter=max_iter, random_state=0).fit(X).n_iter_ <= max_iter


@pytest.mark.parametrize(
    ("falls", "repaired"),
    [
        (np.full(16, 5.0), False),  # all are needed
        ([0.1] + 15 * [5.0], True),
        ([0.1, 0.2] + 14 * [5.0], True),
        ([0.1, 0.2, 0.3] + 13 * [5.0], False),  # enough are left over to find a cause that is missing
        ([0.1] + 5 * [5.0], True),
    ],
)
def test_the_last_phase_repairs_again_if_few_causes_are_not_needed(falls, repaired, monkeypatch):
    fit = SimpleNamespace(parameters=None)
    monkeypatch.setattr(automatic, "falls_without", lambda model, data, parameters: np.array(falls))
    monkeypatch.setattr(automatic, "repair", lambda *given, **settings: "repaired")
    plan = SimpleNamespace(
        models=SimpleNamespace(final=None, annealing=None),
        data=rows_of_weight(500, 500.0),
        max_iter=9,
        tol=0.0,
        random=None,
        watch_phase=lambda model, phase: None,
        loop={},
    )
    assert (automatic.run_final_repair(plan, Search(fit=fit)).fit == "repaired") == repaired


@pytest.mark.parametrize(
    ("posterior", "n_rows", "repairing", "last"),
    [
        (
            Preselected(8, 8, keep=None),
            40,
            True,
            ["run_repair", "run_pruning", "finish", "finish_unpruned", "run_final_repair", "run_revival"],
        ),
        (Preselected(8, 8, keep=None), 40, False, ["finish"]),
        (Preselected(8, 8, keep=0.9), 40, True, ["run_repair", "finish"]),  # bounds of other rows
        # Fewer rows were searched.
        (
            Preselected(8, 8, keep=None),
            30,
            True,
            ["run_repair", "run_pruning", "finish", "finish_unpruned", "run_revival"],
        ),
        (
            "exact",
            40,
            True,
            ["run_repair", "run_pruning", "finish", "finish_unpruned"],
        ),  # repair had the states of the model itself
    ],
)
def test_the_last_phases(posterior, n_rows, repairing, last, monkeypatch):
    monkeypatch.setattr(automatic, "compiling", lambda *given: None)
    estimator = MaximalCauses(10, posterior=posterior)
    data = Local().load(np.ones((40, 25)))
    parts = estimator._parts()
    parts = replace(parts, posterior=parts.posterior.bind(parts, 10, 25, 40))
    plan = SearchPlan(
        choose_models(parts, 10),
        data,
        data if n_rows == 40 else data.sample(n_rows, np.random.RandomState(0)),
        SimpleNamespace(components=np.ones((1, 10, 25))),
        *(100, 0.0, None, None, None, None),
    )
    phases = automatic.phases_of(plan, annealed=False, repairing=repairing)
    assert [phase.func.__name__ for phase in phases][1:] == last


def test_annealed_fits_are_compared_with_one_that_begins_at_rows(monkeypatch):
    monkeypatch.setattr(automatic, "compiling", lambda *given: None)
    model = LinearCauses(3)._parts()
    data = Local().load(np.ones((40, 25)))
    plan = SearchPlan(
        choose_models(model, 3), data, data, SimpleNamespace(components=np.ones((1, 3, 25))), 100, 0.0, *[None] * 4
    )
    names = [phase.func.__name__ for phase in automatic.phases_of(plan, annealed=True, repairing=True)]
    assert names[:3] == ["find_temperature", "anneal", "run_em"]
    assert names[3:7] == ["find_surplus", "run_repair", "run_from_rows", "run_repair_from_rows"]
    kept = Search(fit=SimpleNamespace(bound=1.0))
    assert automatic.run_repair_from_rows(plan, kept) is kept


def test_fits_with_surplus_components_are_repaired_as_long_as_missing_causes_are_found(monkeypatch):
    settings = []
    monkeypatch.setattr(automatic, "repair", lambda *_, **given: settings.append(given) or "repaired")
    monkeypatch.setattr(automatic, "repair_settings", lambda *_: {})
    model = SimpleNamespace(posterior=SimpleNamespace(ascends_bound=True))
    models = SimpleNamespace(search=model, annealing=model)
    plan = SimpleNamespace(models=models, search_data=None, search_iterations=9, places=1)
    found = Search(fit=SimpleNamespace(bound=1.0), surplus=0.5)
    assert automatic.run_repair(plan, found).fit == "repaired"
    automatic.run_repair(plan, found._replace(surplus=None))
    assert (settings[0]["attempts"], settings[0]["least_rise"]) == (1, 0.5)
    assert not {"attempts", "least_rise"} & set(settings[1])


@pytest.mark.parametrize("surplus", [None, 0.5])
def test_a_better_fit_from_rows_is_repaired_as_if_it_had_no_surplus_components(surplus, monkeypatch):
    """Components may seem to be surplus only because annealing ended in a poor optimum."""
    models = SimpleNamespace(search=None)
    plan = SimpleNamespace(models=models, search_data=None, starts={}, search_iterations=9, places=1)
    monkeypatch.setattr(automatic, "repair_settings", lambda *_: {})
    monkeypatch.setattr(automatic, "relearn_from_rows", lambda *_, **given: SimpleNamespace(bound=bound))
    found = Search(fit=SimpleNamespace(bound=1.0), surplus=surplus)
    bound = 1.0
    kept = automatic.run_from_rows(plan, found)
    assert (kept.from_rows, kept.surplus) == (False, surplus)
    bound = 1.5
    better = automatic.run_from_rows(plan, found)
    assert (better.fit.bound, better.from_rows, better.surplus) == (1.5, True, None)


def test_patches_that_annealing_does_not_separate_are_learned_from_rows():
    """On these, annealing ends 28 nats a row below starts from rows, with components that seem to be surplus."""
    image = pytest.importorskip("skimage.data", reason="scikit-image is not installed").clock() * (10 / 255)
    patches = np.lib.stride_tricks.sliding_window_view(image, (8, 8)).reshape(-1, 64)
    chosen = np.random.RandomState(0).choice(len(patches), 800, replace=False)
    X = patches[chosen][np.random.RandomState(0).permutation(800)[::2]]
    assert MaximalCauses(8, random_state=0).fit(X).lower_bound_ > 0
