"""Online EM: running averages against enumeration, and the forms that statistics take when values are missing."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from multicause import MaximalCauses
from multicause.arrays import double_precision
from multicause.datasets import make_bars
from multicause.em import online
from multicause.engines import Local
from multicause.inference import arrange
from tests.oracles import enumeration as oracle

ROWS = make_bars(80, size=3, value=6.0, noise="poisson", random_state=0).data
FIRST, SECOND = ROWS[:40], ROWS[40:]


@pytest.fixture(scope="module")
def fitted():
    estimator = MaximalCauses(3, noise="poisson", annealing=None, repair=False, max_iter=3, random_state=0)
    with pytest.warns(match="max_iter"):
        return estimator.fit(FIRST)


def loaded(fitted, X, *, missing=False):
    model = replace(fitted._model, missing=missing)
    return model, arrange(model, Local().load(X), fitted.n_components)


def stepped(fitted, X, parameters, before=None, *, missing=False):
    with double_precision():
        model, data = loaded(fitted, X, missing=missing)
        return online.step(model, data, parameters, before)


def averages_of(X, parameters):
    """Sums over rows by enumeration, divided by the number of rows, and the mean bound."""
    table = oracle.log_joint(X, parameters.components, parameters.prior["activity"], "max", "poisson")
    sums = oracle.expectations(X, parameters.components, oracle.posterior(table), "max", 1.02)
    return {name: value / len(X) for name, value in sums.items()}, oracle.log_evidence(table).mean()


def test_averages_forget_at_the_rate_of_the_paper(fitted):
    """S ← (1 − η) S + η s with η = (t + 2)^−0.6, counted from t = 0, of which each s is known by enumeration."""
    start = jax.device_get(fitted._parameters)
    one, after, bound = stepped(fitted, FIRST, start)
    two, _, second_bound = stepped(fitted, SECOND, jax.device_get(after), one)
    first, expected_bound = averages_of(FIRST, start)
    second, expected_second = averages_of(SECOND, jax.device_get(after))
    rate = 3**-0.6
    for name in ("credited_data", "credit"):
        np.testing.assert_allclose(one.averages.components[name], first[name], rtol=1e-9, atol=1e-12)
        mean = (1 - rate) * first[name] + rate * second[name]
        np.testing.assert_allclose(two.averages.components[name], mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(two.averages.prior["active"], (1 - rate) * first["active"] + rate * second["active"])
    assert (bound, second_bound) == (pytest.approx(expected_bound), pytest.approx(expected_second))
    assert (one.n_batches, two.n_batches) == (1, 2)


def test_the_first_batch_is_one_step_of_em(fitted):
    start = jax.device_get(fitted._parameters)
    _, after, _ = stepped(fitted, FIRST, start)
    init = {"init": start.components, "activity": start.prior["activity"]}
    with pytest.warns(match="max_iter"):
        other = MaximalCauses(3, noise="poisson", annealing=None, repair=False, max_iter=1, **init).fit(FIRST)
    np.testing.assert_allclose(after.components, other.components_, rtol=1e-9)
    np.testing.assert_allclose(after.prior["activity"], other.activity_, rtol=1e-9)


def test_a_fit_counts_as_many_batches_as_it_had_iterations(fitted):
    assert fitted._online.n_batches == 3
    assert fitted._online.averages.weight == pytest.approx(1)


def test_complete_rows_before_rows_with_missing_values(fitted):
    """Averages over complete rows, brought into the other form, are those of a mask of nothing."""
    start = jax.device_get(fitted._parameters)
    plain, _, _ = stepped(fitted, FIRST, start)
    masked, _, _ = stepped(fitted, FIRST, start, missing=True)
    converted = online.with_counts(plain.averages, masked.averages, start)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), converted, masked.averages)


def test_saved_and_restored(fitted):
    one, after, _ = stepped(fitted, FIRST, jax.device_get(fitted._parameters))
    record = online.saved(one)
    with double_precision():
        again = online.restored(fitted._model, jax.device_get(after), **record)
        jax.tree.map(np.testing.assert_array_equal, again.averages, one.averages)
        assert again.n_batches == 1
        assert online.saved(None) is None
        assert online.restored(fitted._model, jax.device_get(after), None, 0) is None
        with pytest.raises(ValueError, match="do not have the shapes that its parts need"):
            online.restored(fitted._model, jax.device_get(after), record["averages"][::-1], 1)
