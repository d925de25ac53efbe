"""Units of networks that represent two causes at once are split after learning."""

from functools import partial

import numpy as np
import pytest

from multicause import SoftmaxNetwork
from multicause.arrays import double_precision
from multicause.inference import log_evidence
from multicause.metrics import recovered_causes
from multicause.solvers import hebbian_epochs
from multicause.solvers.hebbian_splitting import common_parts, split_units
from tests.search.problem import CAUSES, problem

# Two causes in one unit, with the same sum of weights.
BOTH = (CAUSES[0] + CAUSES[1]) / 2


def split(components):
    """Components after splitting, and the mean log evidence before and after it."""
    given = problem()

    def evidence(parameters):
        return float(given.data.collect(given.data.map(partial(log_evidence, given.model), parameters)).mean())

    with double_precision():
        before = given.parameters(np.maximum(components, 0.05))
        after = split_units(given.model, given.data, before, given.rows, np.ones(len(given.rows)), evidence)
        return np.asarray(after.components), evidence(before), evidence(after)


def test_what_rows_and_a_unit_have_in_common_is_found():
    rows = np.concatenate([np.repeat(CAUSES, 3, axis=0), np.maximum(CAUSES[:1], CAUSES[1:2])])
    active = np.array([[True, False]] * 6 + [[False, True]] * 3 + [[True, False]])
    parts = common_parts(np.array([BOTH, CAUSES[2]]), rows, active, np.ones(len(rows)))
    found = {tuple(part.round(9)) for part in parts}
    assert found == {tuple(CAUSES[0]), tuple(CAUSES[1])}


def test_a_weight_is_a_number_of_repetitions():
    rows = np.concatenate([CAUSES, np.maximum(CAUSES[:1], CAUSES[1:2])])
    active, times = np.array([[True, False], [True, False], [False, True], [True, False]]), np.array([3, 2, 0, 4])
    units = np.array([BOTH, CAUSES[2]])
    weighted = common_parts(units, rows, active, times.astype(float))
    repeated = common_parts(units, np.repeat(rows, times, axis=0), np.repeat(active, times, axis=0), np.ones(9))
    assert len(weighted) == 2
    np.testing.assert_allclose(weighted, repeated)


def test_no_part_is_found_if_units_are_causes():
    states = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1]], dtype=bool)
    rows = (states[:, :, None] * CAUSES).max(axis=1)
    assert common_parts(CAUSES, rows, states, np.ones(len(rows))) == []


def test_a_copy_of_a_unit_for_two_causes_becomes_one_of_them():
    components, before, after = split(np.array([BOTH, BOTH, CAUSES[2]]))
    assert after > before + 1
    sums = components.reshape(3, 3, 2).sum(axis=2)
    pure = sums.max(axis=1) > 0.9 * sums.sum(axis=1)
    assert pure.sum() == 2
    assert pure[2]  # the third unit was a cause before


def test_units_that_are_needed_stay():
    components, before, after = split(CAUSES)
    np.testing.assert_array_equal(components, np.maximum(CAUSES, 0.05))
    assert after == before


@pytest.mark.parametrize("known", [False, True])
def test_a_network_finds_causes_that_never_occur_alone(known, monkeypatch):
    """Networks that know the causes learn by the rule of the papers alone."""
    calls = []
    monkeypatch.setattr(hebbian_epochs, "split_units", lambda *given: calls.append(given) or split_units(*given))
    random = np.random.RandomState(0)
    causes = np.kron(np.eye(4), np.full(3, 10.0))
    states = random.uniform(size=(400, 4)) < 0.4
    states[states.sum(axis=1) == 1, 2:] = False  # the last two only occur with others
    rows = (states[:, :, None] * causes).max(axis=1)
    network = SoftmaxNetwork(8, n_init=1, max_iter=12, random_state=0)
    network.fit(rows, causes=causes if known else None)
    assert bool(calls) != known
    assert known or recovered_causes(network, causes).injective
