"""The softmax network against loops over presentations, its batch counterpart, and the bars."""

import numpy as np
import pytest

from multicause import LinearCauses, MaximalCauses, RestrictedMaximalCauses, SoftmaxNetwork, fit_trials, load
from multicause.annealing import LinearCooling
from multicause.datasets import make_bars, make_phoneme_mixtures
from multicause.metrics import recovered_causes

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
H, D = 4, 9


@pytest.fixture(scope="module")
def bars():
    return make_bars(300, random_state=0)


def test_slow_network_and_batch_algorithm_have_the_same_fixed_point(bars):
    """MCA08 appendix D: with a small rate, the mean weights solve eq. 24. Both run at T = 4, from the same start.

    The rate is 0.02, so weights average over some hundred rows; 0.5 % of the largest weight is allowed for what is
    left, twenty times what four seeds leave.
    """
    words = {"total": 50.0, "activity": 0.2, "init": bars.causes + 1.0}
    fixed = LinearCooling(4.0, final=4.0, n_iter=100)
    batch = RestrictedMaximalCauses(10, annealing=fixed, max_iter=100, tol=0.0, **words).fit(bars.data)
    # The batch algorithm tempers π, as a network does that follows a schedule.
    network = SoftmaxNetwork(10, annealing=fixed, learning_rate=0.02, component_noise=0.0, max_iter=60, **words)
    network.set_params(random_state=0, hold=10**6, n_init=1).fit(bars.data)
    assert np.abs(network.components_ - batch.components_).mean() < 0.005 * batch.components_.max()


def test_defaults_find_all_bars_and_say_so(bars):
    network = SoftmaxNetwork(10, random_state=0).fit(bars.data)
    assert network.outcome_ == "converged"
    assert recovered_causes(network, bars.causes).injective
    assert network.n_learned_ <= network.n_presentations_ - 4000
    np.testing.assert_allclose(network.components_.sum(axis=1), network.total_, rtol=1e-6)
    assert len(network.lower_bounds_) == network.n_iter_
    known = SoftmaxNetwork(10, random_state=0).fit(bars.data, causes=bars.causes)
    assert recovered_causes(known, bars.causes).injective


def test_trials_in_bulk_are_trials_one_by_one(bars):
    sets = [make_bars(150, random_state=seed) for seed in range(3)]
    model = SoftmaxNetwork(10, temperature=10.0, hold=300, max_iter=12)
    bulk = fit_trials(model, [b.data for b in sets], random_state=3, causes=[b.causes for b in sets])
    for t, (found, b) in enumerate(zip(bulk, sets, strict=True)):
        alone = SoftmaxNetwork(10, temperature=10.0, hold=300, max_iter=12, random_state=3 + t)
        alone.fit(b.data, causes=b.causes)
        np.testing.assert_allclose(found.components_, alone.components_, rtol=1e-6, atol=1e-8)
        assert (found.n_iter_, found.n_learned_) == (alone.n_iter_, alone.n_learned_)


def test_starts_lie_between_the_mean_row_and_a_flat_one(seed):
    X = np.random.RandomState(seed).poisson([0.2, 1, 5, 20], (60, 4)).astype(float)
    settings = {"learn": (), "annealing": None, "max_iter": 1, "random_state": seed}
    flat, start = (MaximalCauses(3, init=init, **settings).fit(X).components_ for init in ("random", "mean"))
    np.testing.assert_allclose(start, flat * (X.mean(axis=0) / X.mean() + 1) / 2)
    below = np.where(X > 20, 1.0, -X)  # all means are negative
    start = MaximalCauses(3, init="mean", **settings).fit(below).components_
    np.testing.assert_array_equal(start, MaximalCauses(3, init="random", **settings).fit(below).components_)
    with pytest.raises(ValueError, match="init='mean' is for components that are not negative"):
        LinearCauses(3, init="mean").fit(X)
    # Networks start there without being told.
    words = {"temperature": 5.0, "learning_rate": 1e-12, "component_noise": 0.0, "random_state": seed}
    flat, start = (SoftmaxNetwork(3, **words, **told).partial_fit(X).components_ for told in ({"init": "random"}, {}))
    expected = flat * (X.mean(axis=0) / X.mean() + 1)
    np.testing.assert_allclose(start / start.sum(axis=1)[:, None], expected / expected.sum(axis=1)[:, None], rtol=1e-6)


def test_networks_find_phonemes_at_the_temperature_of_the_paper(optimized):
    """MCA08 §6.9. Single networks found all phonemes in 25 of 25 trials."""
    sets = [make_phoneme_mixtures(500, random_state=1000 + t) for t in range(3)]
    model = SoftmaxNetwork(12, temperature=70.0, component_noise=0.02, total=900.0, hold=1000, max_iter=6)
    rows = [speech.data.astype(np.float32) for speech in sets]
    found = fit_trials(model, rows, random_state=1000, causes=[speech.causes for speech in sets])
    for network, speech in zip(found, sets, strict=True):
        assert recovered_causes(network, speech.causes).injective


def test_more_units_than_causes_and_single_precision():
    bars = make_bars(300, kind="widths", random_state=1)
    network = SoftmaxNetwork(12, random_state=0).fit(bars.data.astype(np.float32))
    assert network.components_.dtype == np.float32
    assert recovered_causes(network, bars.causes).injective


def test_one_unit_has_no_pairs():
    X = make_bars(50, size=3, random_state=0).data
    assert np.isfinite(SoftmaxNetwork(1, temperature=2.0, max_iter=2, random_state=0).fit(X).components_).all()


def test_seeds_repeat_and_streams_do_not_repeat_their_noise(bars):
    a, b = (SoftmaxNetwork(4, temperature=5.0, max_iter=2, random_state=1).fit(bars.data) for _ in range(2))
    np.testing.assert_array_equal(a.components_, b.components_)
    # Weights far from zero move by noise alone; the correlation of 100 independent steps is below 0.4 in all but one of
    # ten thousand seeds, that of repeated ones is near one.
    stream = SoftmaxNetwork(4, init=np.ones((4, 25)), temperature=5.0, random_state=1, learning_rate=1e-6)
    stream.set_params(total=250.0, component_noise=0.1)
    first = stream.partial_fit(bars.data[:50]).components_
    second = stream.partial_fit(bars.data[:50]).components_
    assert np.abs(np.corrcoef((first - 10).ravel(), (second - first).ravel())[0, 1]) < 0.4


def test_batches_that_show_no_row_change_nothing(bars):
    """Small weights are counts that are rounded at random: one row of weight 0.3 is shown by three of ten batches."""
    stream = SoftmaxNetwork(4, temperature=5.0, random_state=1).partial_fit(bars.data[:20])
    shown = []
    for _ in range(8):
        before = stream.components_, stream.n_presentations_
        stream.partial_fit(bars.data[:1], sample_weight=[0.3])
        shown.append(stream.n_presentations_ - before[1])
        assert shown[-1] == 1 or np.array_equal(stream.components_, before[0])
    assert set(shown) == {0, 1}


def test_what_may_change_in_a_stream(bars):
    stream = SoftmaxNetwork(4, temperature=5.0, random_state=1).partial_fit(bars.data[:20])
    np.testing.assert_allclose(stream.set_params(total=30.0).partial_fit(bars.data).components_.sum(axis=1), 30)
    with pytest.raises(ValueError, match="The network has 4 units, but n_components=5 now"):
        stream.set_params(n_components=5).partial_fit(bars.data)


def test_saved_and_loaded_networks_go_on(bars, tmp_path):
    network = SoftmaxNetwork(4, temperature=5.0, max_iter=2, random_state=1).fit(bars.data)
    network.save(tmp_path / "network")
    again = load(tmp_path / "network")
    np.testing.assert_array_equal(again.transform(bars.data), network.transform(bars.data))
    np.testing.assert_array_equal(
        again.partial_fit(bars.data[:20]).components_, network.partial_fit(bars.data[:20]).components_
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": -1.0}, "temperature"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": 1.5}, "learning_rate"),
        ({"component_noise": -0.1}, "component_noise"),
        ({"total": 0.0}, "total"),
        ({"annealing": LinearCooling(1.0, final=2.0)}, "start >= final >= 1"),
        ({"hold": 0}, "hold"),
        (
            {"temperature": 5.0, "annealing": LinearCooling(6.0)},
            "a fixed temperature or a schedule; got temperature=5.0",
        ),
        ({"annealing": LinearCooling(6.0, component_noise=0.5)}, r"use SoftmaxNetwork\(component_noise=0.5\) instead"),
        ({"n_components": 400}, "compares all pairs of causes: 80,201 states for n_components=400, more than 65,536"),
    ],
)
def test_impossible_settings_are_refused(words, text, bars):
    with pytest.raises(ValueError, match=text):
        SoftmaxNetwork(**({"n_components": 4} | words)).fit(bars.data)


def test_bad_data_are_refused(bars):
    with pytest.raises(ValueError, match="Negative values"):
        SoftmaxNetwork(4).fit(bars.data - 1)
    with pytest.raises(ValueError, match="All values of X are equal"):
        SoftmaxNetwork(4).fit(np.zeros((10, 5)))
    for shape in ((3, 4), (25,), (0, 25), (5, 25)):
        with pytest.raises(
            ValueError, match=rf"\(n_causes, 25\), with at most n_components=4 .* got shape \({shape[0]},"
        ):
            SoftmaxNetwork(4).fit(bars.data, causes=np.ones(shape))
    for value in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="causes must be finite and not negative"):
            SoftmaxNetwork(4).fit(bars.data, causes=np.full((3, 25), value))
    network = SoftmaxNetwork(4, temperature=5.0, random_state=0).partial_fit(bars.data[:20])
    with pytest.raises(ValueError, match="24 features"):
        network.partial_fit(bars.data[:20, 1:])
    with pytest.raises(ValueError, match="Negative values"):
        network.partial_fit(bars.data[:20] - 1)
