"""Variants of a fit that repair tries: which cause is recycled, and what it becomes."""

from types import SimpleNamespace

import numpy as np
import pytest

from multicause.arrays import double_precision
from multicause.search.variants import LIFT, all_variants, copied, falls_without
from tests.oracles import enumeration as oracle
from tests.search.problem import CAUSES, problem


@pytest.mark.parametrize("lifted", [False, True])
def test_each_variant_splits_one_cause_in_two(lifted):
    """The recycled cause and the copied one lie on both sides of what the latter was; all else stays."""
    given = problem("sum")
    W = np.random.RandomState(1).normal(size=(3, 6))
    parameters = given.parameters(W)
    parameters.prior["activity"] = np.array([0.2, 0.3, 0.4])
    found = copied(given.model, parameters, 1, np.random.RandomState(0), lifted=lifted)
    sources = [0, 1, 2] if lifted else [0, 2]
    assert len(found.components) == len(sources)
    for components, activity, source in zip(found.components, found.prior["activity"], sources, strict=True):
        if source == 1:  # there is nothing to lift where weights have both signs
            continue
        np.testing.assert_allclose((components[1] + components[source]) / 2, W[source])
        assert not np.allclose(components[1], components[source], rtol=0.05)
        np.testing.assert_array_equal(components[2 - source], W[2 - source])
        assert activity[1] == activity[source] == parameters.prior["activity"][source]
    np.testing.assert_array_equal(parameters.components, W)


def test_a_mixture_of_two_causes_is_split_even_if_few_variants_are_made():
    """A cause that stands for two is active as often as both, and has the mean of their weights."""
    given, n_causes = problem(), 30
    W = np.kron(np.eye(n_causes), np.full(2, 8.0))
    W[0] = (W[0] + W[1]) / 2
    W[1] = W[2:6].mean(axis=0)  # a rare coincidence, which is recycled
    parameters = given.parameters(W, activity=0.1)
    parameters.prior["activity"][:2] = 0.18, 0.01
    found = copied(given.model, parameters, 1, np.random.RandomState(0), lifted=False, most=3)
    assert len(found.components) == 3
    assert (found.components[:, 0] != W[0]).any(axis=1).sum() == 1


def test_one_variant_lifts_all_weights_above_zero():
    given, W = problem(), np.where(CAUSES > 0, CAUSES, 0.0)
    found = copied(given.model, given.parameters(W), 1, np.random.RandomState(0), lifted=True)
    np.testing.assert_allclose(found.components[1], W + LIFT * W.mean())
    assert (found.components >= 0).all()


def test_the_cause_without_which_the_bound_falls_least_comes_first():
    """Without a cause, the states in which it is active are impossible, and the prior of the others is normalized."""
    given = problem("sum")
    parameters = given.parameters(np.array([CAUSES[0] + 0.5, 0.3 * CAUSES[1], CAUSES[2]]))
    parameters.prior["activity"] = np.array([0.2, 0.3, 0.4])
    parameters.noise["variance"] = np.array(16.0)  # no cause is certain in any row
    with double_precision():
        order = np.argsort(falls_without(given.model, given.data, parameters)).tolist()
    W, activity = parameters.components, parameters.prior["activity"]
    without = []
    for cause in range(3):
        others = np.arange(3) != cause
        table = oracle.log_joint(given.rows, W[others], activity[others], "sum", "gaussian", 4.0)
        without.append(oracle.log_evidence(table).sum())
    assert order == np.argsort(without)[::-1].tolist()


def test_dead_causes_come_back_in_some_variants():
    """If one of three causes is dead, two variants revive it, and one copies another cause."""
    given = problem("sum")
    W = np.vstack([CAUSES[:2], np.full((1, 6), 1e3)])
    statistics = SimpleNamespace(prior={"active": np.array([40.0, 40.0, 0.0])}, weight=120.0)
    fit = SimpleNamespace(parameters=given.parameters(W), statistics=statistics)
    with double_precision():
        variants = all_variants(given.model, given.data, fit, [2, 0, 1], 1, np.random.RandomState(0))
    *revived, recycled = variants.components
    assert len(revived) == 2
    for components in revived:
        np.testing.assert_array_equal(components[:2], W[:2])
        assert np.abs(components[2]).max() < 20  # a residual of the data
    np.testing.assert_array_equal(recycled[1], W[1])
    assert not np.allclose(recycled[0], W[0])
