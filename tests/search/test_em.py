"""EM with a user's annealing schedule, repaired at its end."""

import numpy as np

from multicause.annealing import NoAnnealing
from multicause.arrays import double_precision
from multicause.em.results import one_start
from multicause.search.em import learn_and_repair
from tests.search.problem import CAUSES, problem


def test_repair_follows_the_users_own_schedule():
    stuck = np.array([CAUSES[0], CAUSES[0] + 0.1, 0.5 * (CAUSES[1] + CAUSES[2])]) + 0.05
    given, told = problem(), []
    settings = {name: value for name, value in given.settings.items() if name != "places"}
    with double_precision():
        found = learn_and_repair(
            given.model,
            given.data,
            one_start(given.parameters(stuck)),
            annealing=NoAnnealing(),
            random=np.random.RandomState(0),
            max_iter=200,
            watch=lambda progress: told.append(progress.iteration),
            **settings,
        )
    assert found.bound > given.fit(stuck).bound + 0.5
    assert told == list(range(found.n_rounds))  # every iteration of both phases is told once
