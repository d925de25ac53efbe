"""Each prior alone, compared with closed forms and enumerations in NumPy."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from multicause import priors
from multicause.arrays import double_precision
from multicause.parts import missing_methods
from multicause.priors.layered import SingleLayer

H = 4
ACTIVITY = np.array([0.1, 0.3, 0.5, 0.8])
STATES = (np.arange(2**H)[:, None] >> np.arange(H) & 1).astype(float)
#: Probability of every binary state under independent causes.
INDEPENDENT = np.prod(np.where(STATES == 1, ACTIVITY, 1 - ACTIVITY), axis=1)
N_DRAWS = 20_000


@pytest.fixture(autouse=True)
def _double():
    with double_precision():
        yield


def arrays(parameters):
    return {name: jnp.asarray(values) for name, values in parameters.items()}


def drawn(prior, parameters, seed=0):
    sample = jax.jit(prior.sample, static_argnums=2)
    return np.asarray(sample(jax.random.key(seed), arrays(parameters), N_DRAWS))


# ------------------------------------------------------------------------------------------------ Bernoulli


def test_bernoulli_probabilities_are_products():
    prior, chosen = priors.Bernoulli(), np.array([[1, 1], [1, 0], [0, 0]])

    @jax.jit
    def log_probabilities(states, candidates, parameters):
        of_candidates = prior.log_probability_among(candidates, chosen, parameters)
        return prior.log_probability(states, parameters), prior.log_probability_of_singles(parameters), of_candidates

    # Candidates 3 and 1 of a row, of which both, one or none are active.
    of_all, of_singles, among = log_probabilities(STATES, np.array([[3], [1]]), {"activity": ACTIVITY})
    np.testing.assert_allclose(np.exp(of_all), INDEPENDENT, rtol=1e-12)
    singles = INDEPENDENT[[0, *(2 ** np.arange(H))]]
    np.testing.assert_allclose(np.exp(of_singles), singles, rtol=1e-12)
    np.testing.assert_allclose(np.exp(among)[:, 0], INDEPENDENT[[8 + 2, 8, 0]], rtol=1e-12)


@pytest.mark.parametrize("prior", [priors.Bernoulli(), priors.Graded(), priors.SpikeAndSlab()], ids=repr)
@pytest.mark.parametrize("most", [1, 2, 4])
def test_mass_of_sparse_states_is_that_of_an_enumeration(prior, most):
    parameters = arrays(prior.initialize(H, ACTIVITY))
    expected = INDEPENDENT[STATES.sum(axis=1) <= most].sum()
    found = jax.jit(prior.log_mass, static_argnums=1)(parameters, most)
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-12)


def test_bernoulli_learns_relative_frequencies():
    before = arrays(priors.Bernoulli().initialize(H, None))
    np.testing.assert_array_equal(before["activity"], np.full(H, 0.5))
    statistics = {"active": jnp.array([1.0, 2.0, 0.0, 9.0])}
    found = priors.Bernoulli().maximize(before, statistics, 10.0)["activity"]
    np.testing.assert_allclose(found, [0.1, 0.2, 1e-6, 0.9])
    shared = priors.Bernoulli(shared=True).maximize(before, statistics, 10.0)["activity"]
    np.testing.assert_allclose(shared, np.full(H, 0.3))


def test_bernoulli_activities_explain_truncated_means():
    """Means of states with at most two active causes, by enumeration, lead back to the activities."""
    kept = STATES.sum(axis=1) <= 2
    activity = np.array([0.1, 0.2, 0.3, 0.15])
    p = np.prod(np.where(STATES == 1, activity, 1 - activity), axis=1) * kept
    means = p @ STATES / p.sum()
    start, maximize = {"activity": means}, jax.jit(partial(priors.Bernoulli().maximize, max_active=2))
    for _ in range(5):
        start = maximize(start, {"active": means}, 1.0)
    np.testing.assert_allclose(start["activity"], activity, rtol=1e-3)


@pytest.mark.parametrize(
    ("prior", "activity", "message"),
    [
        (priors.Bernoulli(), [0.5, 0.5], r"one number or one per cause, shape \(4,\); got shape \(2,\)"),
        (priors.Bernoulli(), 1.0, "strictly between 0 and 1"),
        (priors.Bernoulli(shared=True), [0.1, 0.1, 0.1, 0.2], "has one activity for all causes; got different values"),
        (priors.Categorical(), 0.25, "one proportion per cause"),
        (priors.Categorical(), np.ones(H), "must be positive and sum to one"),
        (priors.Categorical(uniform=True), [0.1, 0.2, 0.3, 0.4], "leave activity None"),
        (priors.Laplace(), 0.5, "always active; leave activity None"),
        (priors.Layered(), 0.0, "strictly between 0 and 1"),
    ],
)
def test_invalid_activities_are_errors(prior, activity, message):
    with pytest.raises(ValueError, match=message):
        prior.initialize(H, activity)


# ---------------------------------------------------------------------------------------------- Categorical


def test_categorical_allows_one_active_cause():
    gamma = np.array([0.1, 0.2, 0.3, 0.4])
    prior, parameters = priors.Categorical(), {"activity": jnp.asarray(gamma)}
    expected = np.where(STATES.sum(axis=1) == 1, STATES @ gamma, 0)
    np.testing.assert_allclose(np.exp(prior.log_probability(STATES, parameters)), expected, rtol=1e-12)
    np.testing.assert_allclose(np.exp(prior.log_probability_of_singles(parameters)), [0, *gamma], rtol=1e-12)
    found = prior.maximize(parameters, {"active": jnp.array([1.0, 1.0, 2.0, 4.0])}, 8.0)["activity"]
    np.testing.assert_allclose(found, [1 / 8, 1 / 8, 1 / 4, 1 / 2])
    assert priors.Categorical(uniform=True).maximize(parameters, {}, 8.0) is parameters
    copied = prior.copied({"activity": gamma}, source=3, target=0)["activity"]
    np.testing.assert_allclose(copied, np.array([0.2, 0.2, 0.3, 0.2]) / 0.9)


# ----------------------------------------------------------------------------------------------- Continuous

DENSITIES = {
    priors.Gaussian: stats.norm.pdf,
    priors.Laplace: stats.laplace.pdf,
    priors.Cauchy: stats.cauchy.pdf,
    priors.HyperbolicSecant: lambda v: 1 / (np.pi * np.cosh(v)),
    priors.SubGaussian: lambda v: (stats.norm.pdf(v - 1) + stats.norm.pdf(v + 1)) / 2,
}


@pytest.mark.parametrize("kind", DENSITIES, ids=lambda kind: kind.__name__)
def test_continuous_densities_and_their_derivatives(kind):
    scale, v = 2.0, np.array([-3.0, -0.7, 0.4, 2.5])
    prior = kind(scale=scale)
    parameters = arrays(prior.initialize(H, None))

    @jax.jit
    def values_at(v):
        return prior.log_probability(v[None], parameters), prior.slope(v), prior.curvature(v)

    log_probability, slope, curvature = values_at(v)
    expected = np.sum(np.log(DENSITIES[kind](v / scale) / scale))
    np.testing.assert_allclose(log_probability, [expected], rtol=1e-12)
    step = 1e-4
    up, now, down = (np.log(DENSITIES[kind](v + shift)) for shift in (step, 0, -step))
    np.testing.assert_allclose(slope, (up - down) / (2 * step), atol=1e-7)
    np.testing.assert_allclose(curvature, (up - 2 * now + down) / step**2, atol=1e-5)
    assert prior.maximize(parameters, {}, 1.0) is parameters


@pytest.mark.parametrize("kind", DENSITIES, ids=lambda kind: kind.__name__)
def test_continuous_samples_have_their_distribution(kind, seed):
    """The share of samples below some thresholds, within five standard errors."""
    causes = drawn(kind(scale=2.0), kind(scale=2.0).initialize(2, None), seed).ravel()
    grid = np.linspace(-60, 60, 120_001)
    cumulative = np.cumsum(DENSITIES[kind](grid)) * (grid[1] - grid[0])
    for threshold in (-2.0, 0.5, 3.0):
        expected = np.interp(threshold / 2, grid, cumulative / cumulative[-1])
        tolerance = 5 * np.sqrt(expected * (1 - expected) / causes.size) + 6e-3 * (kind is priors.Cauchy)
        assert abs(np.mean(causes < threshold) - expected) < tolerance


# ---------------------------------------------------------------------------------- Graded and spike-and-slab


def test_graded_probabilities_are_products_over_levels():
    prior = priors.Graded((0, 1, 2.5))
    levels = np.array([[0.7, 0.2, 0.1], [0.5, 0.1, 0.4]])
    parameters = {"level_probabilities": jnp.asarray(levels)}
    states = np.array([[0, 0], [1, 2.5], [2.5, 0]])

    @jax.jit
    def found(states, parameters):
        by_level = prior.log_probability_of_levels(parameters)
        return prior.log_probability(states, parameters), prior.activity(parameters), by_level

    log_probability, activity, by_level = found(states, parameters)
    np.testing.assert_allclose(np.exp(log_probability), [0.35, 0.08, 0.05], rtol=1e-12)
    np.testing.assert_allclose(activity, [0.3, 0.5], rtol=1e-12)
    np.testing.assert_allclose(np.exp(by_level[2.5]), levels[:, 2], rtol=1e-12)
    assert prior.strengths == (1, 2.5)
    first = prior.initialize(2, 0.4)["level_probabilities"]
    np.testing.assert_allclose(first, [[0.6, 0.2, 0.2]] * 2)
    assert priors.Ternary().levels == (-1, 0, 1)
    many, near = tuple(range(65)), (0, 1, 1 + 1e-9)
    for wrong, message in (
        ((1, 2), "must have zero"),
        ((0, 1, 1), "1 is repeated"),
        ([0, 1], "must be a tuple"),
        (many, "at most 64 levels; got 65"),
        (near, "single precision"),
    ):
        with pytest.raises(ValueError, match=message):
            priors.Graded(wrong).validate()


def test_spike_and_slab_learns_moments_of_active_causes():
    prior = priors.SpikeAndSlab()
    before = arrays(prior.initialize(2, None))
    statistics = {
        "active": jnp.array([4.0, 0.0]),
        "slabs": jnp.array([8.0, 0.0]),
        "slab_squares": jnp.array([28.0, 0.0]),
    }
    found = jax.tree.map(np.asarray, jax.jit(prior.maximize)(before, statistics, 16.0))
    np.testing.assert_allclose(found["activity"], [0.25, 1e-6])
    np.testing.assert_allclose(found["slab_mean"], [2, 0])
    np.testing.assert_allclose(found["slab_variance"], [28 / 4 - 4, 1])  # an unused cause keeps its slab
    # Components of length one and longer slabs are the same model.
    components = np.array([[3.0, 4.0], [0.0, 2.0]])
    scaled, slabs = jax.tree.map(np.asarray, jax.jit(prior.rescaled)(components, found))
    np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), 1)
    np.testing.assert_allclose(slabs["slab_mean"][:, None] * scaled, found["slab_mean"][:, None] * components)
    np.testing.assert_allclose(slabs["slab_variance"], np.array([25.0, 4.0]) * found["slab_variance"])


@pytest.mark.parametrize(
    "prior", [priors.Bernoulli(), priors.Ternary(), priors.SpikeAndSlab(), SingleLayer()], ids=repr
)
def test_samples_are_active_as_often_as_their_activity_says(prior, seed):
    causes = drawn(prior, prior.initialize(H, ACTIVITY), seed)
    assert causes.shape == (N_DRAWS, H)
    error = 5 * np.sqrt(ACTIVITY * (1 - ACTIVITY) / N_DRAWS)
    assert (np.abs((causes != 0).mean(axis=0) - ACTIVITY) < error).all()


# -------------------------------------------------------------------------------------------------- Layered


def test_a_single_layer_has_probabilities_of_independent_causes():
    parameters = arrays(SingleLayer().initialize(H, ACTIVITY))
    np.testing.assert_allclose(np.exp(SingleLayer().log_probability(STATES, parameters)), INDEPENDENT, rtol=1e-12)
    np.testing.assert_allclose(SingleLayer().activity(parameters), ACTIVITY, rtol=1e-12)


def test_layered_causes_are_drawn_from_the_top(seed):
    """One higher cause switches both lower ones on or off; the frequencies are sums over its states."""
    prior = priors.Layered(higher=(1,))
    parameters = prior.initialize(2, 0.3) | {"weights_1": np.array([[4.0, -4.0]]), "bias_2": np.array([1.0])}
    causes = drawn(prior, parameters, seed)
    on = 1 / (1 + np.exp(-1.0))
    below = 1 / (1 + np.exp(-(parameters["bias_1"] + np.array([[0.0], [1.0]]) * parameters["weights_1"])))
    expected = (1 - on) * below[0] + on * below[1]
    assert (np.abs(causes.mean(axis=0) - expected) < 5 * np.sqrt(expected * (1 - expected) / N_DRAWS)).all()


def test_only_priors_of_several_layers_do_without_a_probability():
    lacking = [name for name in priors.__all__ if name not in ("NAMES", "Prior", "Continuous")]
    lacking = [name for name in lacking if not hasattr(getattr(priors, name), "log_probability")]
    assert lacking == ["Layered"]
    assert missing_methods(priors.Layered()) == []

    class Incomplete(priors.Prior):
        """A prior that declares binary causes without their probability."""

    assert "log_probability" in missing_methods(Incomplete())
    with pytest.raises(ValueError, match=r"higher must hold positive numbers of causes, at least one; got \(\)"):
        priors.Layered(higher=()).validate()
