"""What parts cannot do they refuse by name, and models never ask them for it."""

import jax.numpy as jnp
import numpy as np
import pytest

from multicause import FactorAnalysis, HelmholtzMachine, IndependentComponents, SparseCoding
from multicause.arrays import double_precision
from multicause.combinations import Maximum, Sum
from multicause.learning.updates import NAMES as UPDATES
from multicause.learning.updates import DeltaRule, LeastSquares, NaturalGradient
from multicause.learning.updates.wake_sleep import WakeSleep
from multicause.learning.updates.weighted_mean import WeightedMean
from multicause.model import Block
from multicause.noises import ClusterGaussian, DiagonalGaussian, Noiseless, Poisson
from multicause.priors import Laplace, Layered

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
MEAN, NOTHING = np.ones((2, 3)), {}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: ClusterGaussian().natural(MEAN, NOTHING), "use the posterior OneHot"),
        (lambda: ClusterGaussian().log_normalizer(MEAN, NOTHING), "use the posterior OneHot"),
        (lambda: ClusterGaussian().variance(MEAN, NOTHING), "use the posterior OneHot"),
        (lambda: ClusterGaussian().sample(None, MEAN, NOTHING), "use sample_given"),
        (lambda: ClusterGaussian().initialize(None, None), "initialize_for"),
        (lambda: Noiseless().natural(MEAN, NOTHING), "use the posterior Inverse"),
        (lambda: Noiseless().log_normalizer(MEAN, NOTHING), "use the posterior Inverse"),
        (lambda: Laplace().copied({}, 0, 1), "cannot be switched off"),
        (lambda: Layered().copied({}, 0, 1), "not repaired"),
        (lambda: Layered(higher=(2,)).log_probability(MEAN, NOTHING), "no closed form"),
    ],
)
def test_the_refusal_names_what_to_use(call, text):
    with pytest.raises(NotImplementedError, match=text):
        call()


@pytest.mark.parametrize(
    ("estimator", "text"),
    [
        (FactorAnalysis(2, max_iter=1), "update='least_squares'"),
        (SparseCoding(2, max_iter=1), "Continuous causes have no list of states"),
        (IndependentComponents(2, max_iter=1), "Causes without noise have no list of states"),
        (HelmholtzMachine(2, max_iter=1), "A recognition network has no list of states"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_posteriors_without_states_have_nothing_to_pull_from(estimator, text):
    X = (np.random.RandomState(0).uniform(size=(12, 4)) < 0.5).astype(float)
    model = estimator.fit(X)
    rows = model._prepared(X)
    with double_precision():
        block = Block(jnp.asarray(rows), jnp.ones(12), jnp.zeros(12))
        parts = model._model
        inference = parts.posterior.infer(parts, model._parameters, block, jnp.ones(()))
        with pytest.raises(NotImplementedError, match=text):
            inference.pull((None, None))


def test_updates_say_what_they_lack():
    """Updates that need squares refuse other parts before learning begins."""
    assert WakeSleep().missing(Sum(), Poisson()) == ["a recognition network (HelmholtzMachine)"]
    for update in (LeastSquares(), DeltaRule()):
        assert update.missing(Maximum(), Poisson())
        assert not update.missing(Sum(), DiagonalGaussian())


@pytest.mark.parametrize("update", [cls() for cls in (*UPDATES.values(), NaturalGradient, WakeSleep, WeightedMean)])
def test_only_updates_from_moments_learn_a_sparse_code(update):
    model = SparseCoding(2, update=update, max_iter=1, random_state=0)
    if isinstance(update, LeastSquares):
        assert np.isfinite(model.fit(np.eye(4)).components_).all()
        return
    with pytest.raises(ValueError, match="cannot learn a sparse code.* DeltaRule and LeastSquares serve"):
        model.fit(np.eye(4))
