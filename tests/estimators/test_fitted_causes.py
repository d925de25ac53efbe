"""Methods of fitted causal models that are not those of scikit-learn: scores under another posterior."""

import numpy as np
import pytest

from multicause import LinearCauses, MaximalCauses
from multicause.compatibility import IncompatiblePartsError
from multicause.datasets import make_bars
from multicause.posteriors import LinearGaussian, Preselected

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X = make_bars(60, size=3, combination="sum", noise="gaussian", random_state=0).data
SETTINGS = {"annealing": None, "repair": False, "max_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def sparse():
    return LinearCauses(6, posterior=Preselected(3, 2), **SETTINGS).fit(X)


def test_a_name_or_an_object_is_another_posterior(sparse):
    """The sum over all states, written out here, is the log evidence of the exact posterior."""
    states = ((np.arange(2**6)[:, None] >> np.arange(6)) & 1).astype(float)
    prior = states @ np.log(sparse.activity_) + (1 - states) @ np.log1p(-sparse.activity_)
    errors = ((X[:, None] - states @ sparse.components_) ** 2).sum(axis=2)
    variance = sparse.noise_variance_
    joint = prior - errors / (2 * variance) - X.shape[1] / 2 * np.log(2 * np.pi * variance)
    evidence = np.logaddexp.reduce(joint, axis=1)
    np.testing.assert_allclose(sparse.score_samples_under(X, "exact"), evidence, rtol=1e-10)
    np.testing.assert_allclose(sparse.score_samples_under(X, Preselected(6, 6)), evidence, rtol=1e-10)
    np.testing.assert_allclose(sparse.score_samples_under(X, Preselected(3, 2)), sparse.score_samples(X), rtol=1e-12)
    assert (sparse.score_samples(X) <= evidence + 1e-9).all()


def test_posteriors_that_do_not_suit_the_model_are_refused(sparse):
    with pytest.raises(ValueError, match="Unknown posterior 'exakt'"):
        sparse.score_samples_under(X, "exakt")
    with pytest.raises(ValueError, match="candidates=7 causes out of n_components=6"):
        sparse.score_samples_under(X, Preselected(7, 2))
    maximal = MaximalCauses(6, **SETTINGS).fit(X)
    with pytest.raises(IncompatiblePartsError, match="MaximalCauses"):
        maximal.score_samples_under(X, LinearGaussian())


@pytest.mark.parametrize("rows", [5.0, None, X[0], X[:, :3]], ids=["number", "nothing", "one row", "few columns"])
def test_what_is_no_table_is_refused_as_by_other_scores(sparse, rows):
    with pytest.raises(ValueError) as other:
        sparse.score_samples(rows)
    with pytest.raises(ValueError) as refused:
        sparse.score_samples_under(rows, "exact")
    assert str(refused.value) == str(other.value)
