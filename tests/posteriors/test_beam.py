"""Beam search against enumeration: scores, strengths and sums of complete rows and of rows with missing values."""

from copy import copy
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multicause import LinearCauses, SpikeAndSlabCauses
from multicause.arrays import double_precision
from multicause.combinations import Sum
from multicause.datasets import make_bars
from multicause.model import Model
from multicause.noises import DiagonalGaussian, Gaussian
from multicause.posteriors import Beam, Exact
from multicause.posteriors.beams import beam_search
from multicause.posteriors.beams.beam_search import Strengths, numbers_of_states, search_states
from multicause.posteriors.beams.beam_states import BeamStates
from multicause.priors import SpikeAndSlab
from multicause.records import Block, Parameters
from multicause.updates import LeastSquares
from tests.oracles.parts import SpikeEnumeration

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
H, D, N = 5, 4, 6


def problem(seed, noise="scalar", masked=False):
    """Parameters of five causes, six rows, and which values were observed; one row has none."""
    random = np.random.RandomState(seed)
    variance = np.array(0.7) if noise == "scalar" else random.uniform(0.3, 1.5, D)
    prior = {
        "activity": random.uniform(0.1, 0.6, H),
        "slab_mean": random.normal(size=H),
        "slab_variance": random.uniform(0.1, 3, H),
    }
    parameters = Parameters(
        random.normal(size=(H, D)), prior, {"variance": variance, "floor": np.array(0), "origin": np.zeros(D)}
    )
    observed = random.uniform(size=(N, D)) < 0.6 if masked else np.ones((N, D), dtype=bool)
    if masked:
        observed[0], observed[1] = False, True
    return parameters, 2 * random.normal(size=(N, D)), observed


NAMES = (
    "log_evidence",
    "total_bound",
    "total_free_energy",
    "total_log_likelihood",
    "mean_causes",
    "total_active",
    "cause_pairs",
    "cause_data",
    "residuals",
)


@partial(jax.jit, static_argnums=(0, 1))
def expectations(model, kept, parameters, block, temperature, observed):
    """All that parts ask for, and the states that were found."""
    found = BeamStates(model, parameters, block, temperature, kept, observed)
    values = {name: getattr(found, name) for name in NAMES}
    return values, found.recognize(1 + sum(kept)), [states.active for states in found._found]


def infer(parameters, Y, observed, kept, temperature=1.0, dtype=float, masked=None):
    """Expectations of the rows; ``masked`` says whether there is a mask, by default if it is needed."""
    noise = Gaussian() if parameters.noise["variance"].ndim == 0 else DiagonalGaussian()
    model = Model(SpikeAndSlab(), Sum(), noise, Beam(), LeastSquares(), frozenset())
    with double_precision():
        rows = jnp.asarray(np.where(observed, Y, np.nan), dtype)
        block = Block(rows, jnp.ones(N, dtype), jnp.zeros(N, dtype))
        mask = jnp.asarray(observed, dtype) if (not observed.all() if masked is None else masked) else None
        parameters = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), parameters)
        found = expectations(model, tuple(kept), parameters, block, jnp.asarray(temperature), mask)
        return jax.device_get(found)


def search(W, rows, strengths, kept, masks=None):
    """Beam search in one program: traced anew in each call, and compiled in less time than one for each operation."""
    traced = jax.jit(lambda *given: search_states(*given[:3], kept, *given[3:]))
    with double_precision():
        return jax.device_get(traced(W, rows, strengths, masks))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("width", [3, 9, 100])
def test_states_are_distinct_and_have_the_right_score_and_strengths(width, masked, seed):
    """With width 9 the pairs of causes are one too many, so that enumeration goes over into search."""
    parameters, Y, observed = problem(seed, masked=masked)
    truth = SpikeEnumeration(parameters, Y, observed=observed)
    _, states, _ = infer(parameters, Y, observed, numbers_of_states(H, H, width))
    numbers = states.states @ 2 ** np.arange(H)  # those of the enumeration
    for n in range(N):
        assert len(set(numbers[n])) == len(numbers[n])
        sizes = np.bincount(states.states[n].sum(axis=1))
        assert sizes.tolist() == [1, *numbers_of_states(H, H, width)]
        joint = truth.table[n, numbers[n]]
        evidence = np.logaddexp.reduce(joint)
        np.testing.assert_allclose(states.log_evidence[n], evidence, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(states.probabilities[n], np.exp(joint - evidence), rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(states.strengths[n], truth.means[n, numbers[n]], rtol=1e-7, atol=1e-9)
    assert (np.diff(states.probabilities, axis=1) <= 0).all()


def test_each_size_keeps_the_best_children_of_the_states_before(seed):
    """Beam search in Python, state by state, from scores of the oracle."""
    parameters, Y, observed = problem(seed)
    truth = SpikeEnumeration(parameters, Y)
    width = 3
    _, _, found = infer(parameters, Y, observed, numbers_of_states(H, 4, width))
    for n in range(N):
        beam = [frozenset()]
        for active in found:
            children = {parent | {h} for parent in beam for h in range(H) if h not in parent}
            score = {child: truth.table[n, sum(2**h for h in child)] for child in children}
            beam = sorted(children, key=score.get, reverse=True)[:width]
            assert {frozenset(state) for state in active[n].tolist()} == set(beam)


@pytest.mark.parametrize("noise", ["scalar", "diagonal"])
@pytest.mark.parametrize("temperature", [1.0, 1.7])
def test_sums_over_observed_values_equal_enumeration(noise, temperature, seed):
    parameters, Y, observed = problem(seed, noise, masked=True)
    truth = SpikeEnumeration(parameters, Y, temperature, observed)
    expected = truth.sums()
    found, _, _ = infer(parameters, Y, observed, numbers_of_states(H, H, 100), temperature)
    residuals = truth.residuals(parameters.components)
    likelihood = -0.5 * residuals / truth.variance - 0.5 * observed.sum(axis=0) * np.log(2 * np.pi * truth.variance)
    truths = {
        "total_bound": truth.bound,
        "total_free_energy": truth.free_energy.sum(),
        "total_log_likelihood": likelihood.sum(),
        "mean_causes": truth.mean_causes,
        "total_active": expected["active"],
        "cause_pairs": expected["cause_pairs"],
        "cause_data": expected["cause_data"],
        "residuals": residuals,
    }
    for name, value in truths.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-8, atol=1e-9, err_msg=name)


def test_a_row_without_any_value_gets_the_prior(seed):
    parameters, Y, observed = problem(seed, masked=True)
    found, _, _ = infer(parameters, Y, observed, numbers_of_states(H, H, 100))
    assert not observed[0].any()
    assert found["log_evidence"][0] == pytest.approx(0, abs=1e-12)
    expected = parameters.prior["activity"] * parameters.prior["slab_mean"]
    np.testing.assert_allclose(found["mean_causes"][0], expected, rtol=1e-9)


def test_a_mask_of_nothing_changes_nothing(seed):
    parameters, Y, observed = problem(seed)
    plain, masked = (
        infer(parameters, Y, observed, numbers_of_states(H, 3, 4), masked=mask)[0] for mask in (False, True)
    )
    for name in NAMES:
        np.testing.assert_allclose(masked[name], plain[name], rtol=1e-9, atol=1e-9, err_msg=name)


def test_single_precision_is_close_to_double(seed):
    parameters, Y, observed = problem(seed, masked=True)
    kept = numbers_of_states(H, 3, 4)
    single, double = (infer(parameters, Y, observed, kept, dtype=dtype)[0] for dtype in (np.float32, np.float64))
    assert single["log_evidence"].dtype == np.float32
    for name in NAMES:
        np.testing.assert_allclose(single[name], double[name], rtol=1e-3, atol=1e-3, err_msg=name)


def test_a_dependent_component_does_no_harm():
    """Causes with equal components have Schur complements of zero, or slightly less, beside each other."""
    W = np.tile(np.eye(1, 4), (3, 1)).astype(np.float32)
    strengths = Strengths(*(np.full(3, value, np.float32) for value in (-1, 0, 1e6)))
    found = search(W, np.full((1, 4), 7, np.float32), strengths, [3, 3, 1])
    assert all(np.isfinite(leaf).all() for states in found for leaf in states)


@pytest.fixture(scope="module")
def bars():
    return make_bars(120, size=3, kind="signed", noise="gaussian", noise_scale=1.0, random_state=0).data


def test_binary_causes_with_a_wide_beam_are_exact(bars):
    settings = {"annealing": None, "max_iter": 5, "tol": 0, "random_state": 0}
    exact, wide, narrow = (
        LinearCauses(6, posterior=posterior, **settings).fit(bars) for posterior in (Exact(), Beam(6, 20), Beam(3, 4))
    )
    np.testing.assert_allclose(wide.components_, exact.components_, rtol=1e-7)
    np.testing.assert_allclose(wide.lower_bounds_, exact.lower_bounds_, rtol=1e-9)
    np.testing.assert_allclose(wide.transform(bars), exact.transform(bars), atol=1e-8)
    best, expected = wide.recognize(bars, top=3), exact.recognize(bars, top=3)
    np.testing.assert_array_equal(best.states[:, 0], expected.states[:, 0])
    np.testing.assert_allclose(best.probabilities, expected.probabilities, atol=1e-8)
    narrow._parameters = exact._parameters
    assert (narrow.score_samples(bars) <= exact.score_samples(bars) + 1e-9).all()


def test_a_wider_beam_raises_the_bound(bars):
    exact = SpikeAndSlabCauses(6, posterior="exact", annealing=None, max_iter=3, random_state=0).fit(bars)

    def scores(width):
        """Of the same parameters under another posterior."""
        other = copy(exact)
        other._model = replace(exact._model, posterior=Beam(4, width).bind(exact._model, 6, 9, len(bars)))
        return other.score_samples(bars)

    found = [scores(width) for width in (1, 3, 100)]
    assert found[0].mean() < found[1].mean() < found[2].mean() < exact.score(bars)
    assert all((score <= exact.score_samples(bars) + 1e-9).all() for score in found)


def test_linear_causes_are_found_by_name(bars):
    model = LinearCauses(6, posterior="beam", random_state=0, max_iter=40).fit(bars)
    assert model.posterior_ == Beam()
    assert model.is_explained(bars).mean() > 0.9


@pytest.mark.parametrize(
    ("posterior", "message"),
    [
        (Beam(max_active=0), "max_active of Beam must be a whole number of at least 1; got 0"),
        (Beam(width=2.5), "width of Beam must be a whole number of at least 1; got 2.5"),
    ],
)
def test_numbers_that_make_no_sense(posterior, message):
    with pytest.raises(ValueError, match=message):
        LinearCauses(3, posterior=posterior).fit(np.eye(4))


def test_a_beam_may_be_wider_than_there_are_states():
    assert Beam(max_active=50, width=50).n_states(4) == 16
    assert numbers_of_states(4, 9, 5) == [4, 5, 4, 1]
    assert Beam(2, 3).n_states(100) == 7


@pytest.mark.parametrize("masked", [False, True])
def test_nearly_dependent_components_in_single_precision(masked, seed):
    """Strengths do not grow beyond all bounds where components differ by little: they are those of double precision."""
    random = np.random.RandomState(seed)
    shapes = random.normal(size=(2, 64))
    W = shapes[random.randint(2, size=16)] + 0.005 * random.normal(size=(16, 64))
    W *= 35 / np.linalg.norm(W, axis=1, keepdims=True)  # in units of the noise
    rows = random.normal(size=(60, 2)) @ shapes * 35 + random.normal(size=(60, 64))
    observed = np.where(random.uniform(size=rows.shape) < 0.3, 0.02, 1.0) if masked else None
    data = rows if observed is None else observed * rows

    def states(dtype):
        prior = Strengths(*(np.full(16, value, dtype) for value in (-1.0, 0.0, 50.0)))
        masks = None if observed is None else observed.astype(dtype)
        return search(W.astype(dtype), data.astype(dtype), prior, numbers_of_states(16, 5, 4), masks)

    for single, double in zip(states(np.float32), states(np.float64), strict=True):
        assert single.mean.dtype == np.float32
        assert np.abs(single.mean).max() < 1.5 * np.abs(double.mean).max()
        np.testing.assert_allclose(single.score, double.score, rtol=1e-3)


@pytest.mark.parametrize("reads_grams", [False, True])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-9), (np.float32, 2e-4)])
def test_values_may_have_weights_between_zero_and_one(reads_grams, dtype, rtol, monkeypatch, seed):
    """A value of weight p has noise of variance 1/p; products are computed for states, or read from Gram matrices."""
    monkeypatch.setattr(beam_search, "_reads_grams", lambda kept, n_components: reads_grams)
    random = np.random.RandomState(seed)
    components, Y, weights = (
        random.normal(size=(H, D)),
        random.normal(size=(N, D)),
        random.uniform(0.02, 1, size=(N, D)),
    )
    log_odds, mean, variance = random.normal(size=H), random.normal(size=H), random.uniform(0.1, 3, H)
    given = [each.astype(dtype) for each in (components, weights * Y, log_odds, mean, variance, weights)]
    levels = search(*given[:2], Strengths(*given[2:5]), numbers_of_states(H, H, 100), given[5])
    assert sum(states.score.shape[1] for states in levels) == 2**H - 1
    for states in levels:
        for n, b in np.ndindex(states.score.shape):
            active = states.active[n, b]
            W, slabs = components[active], np.diag(1 / variance[active])
            precision = (W * weights[n]) @ W.T + slabs
            product = (W * weights[n]) @ Y[n] + slabs @ mean[active]
            expected = log_odds[active].sum() + 0.5 * product @ np.linalg.solve(precision, product)
            expected -= 0.5 * mean[active] @ slabs @ mean[active]
            expected -= 0.5 * (np.linalg.slogdet(precision)[1] + np.log(variance[active]).sum())
            assert states.score[n, b] == pytest.approx(expected, rel=rtol, abs=rtol)
            np.testing.assert_allclose(
                states.mean[n, b], np.linalg.solve(precision, product), rtol=rtol, atol=10 * rtol
            )
