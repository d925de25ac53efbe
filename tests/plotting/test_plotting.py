"""Displays draw what the models say, and refuse what cannot be drawn."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from sklearn.exceptions import NotFittedError

from multicause import EnergyComponents, MaximalCauses, PrincipalComponents, TruncatedAutoencoder
from multicause.callbacks import FieldRecorder
from multicause.datasets import make_bars
from multicause.metrics import recovered_causes
from multicause.plotting import (
    ComponentsDisplay,
    ConvergenceDisplay,
    PosteriorDisplay,
    RecoveryDisplay,
    animate_fields,
    draw_images,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHAPE = (3, 3)


@pytest.fixture(scope="module", autouse=True)
def _without_screen():
    import matplotlib

    matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _closed():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.fixture(scope="module")
def bars():
    return make_bars(150, size=3, noise="gaussian", noise_scale=1.0, random_state=0)


@pytest.fixture(scope="module")
def recorder():
    return FieldRecorder(every=2)


@pytest.fixture(scope="module")
def model(bars, recorder):
    return MaximalCauses(6, random_state=0, max_iter=60).set_callbacks(recorder).fit(bars.data)


@pytest.fixture(scope="module")
def principal(bars):
    return PrincipalComponents(2, random_state=0).fit(bars.data)


def pixels(artist):
    return np.asarray(artist.get_array()).ravel()


# ------------------------------------------------------------------------------------------------ components


def test_components_are_drawn_as_images_in_the_order_of_their_activity(model):
    display = ComponentsDisplay.from_estimator(model, image_shape=SHAPE, sort="activity", most=5, columns=4)
    order = sorted(range(6), key=lambda h: -model.activity_[h])[:5]
    assert display.axes_.shape == (2, 4)
    assert display.figure_ is display.axes_[0, 0].figure
    for place, h in enumerate(order):
        axes = display.axes_.flat[place]
        assert list(axes.images) == [display.artists_[place]]
        np.testing.assert_allclose(pixels(display.artists_[place]), model.components_[h])
        assert axes.get_title() == f"{h}: {model.activity_[h]:.2g}"
        assert display.artists_[place].get_clim() == display.artists_[0].get_clim()
    assert not any(axes.axison for axes in display.axes_.flat[5:])


def test_components_are_drawn_as_lines_on_axes_of_the_user(principal):
    from matplotlib import pyplot

    figure, own = pyplot.subplots(1, 2)
    display = ComponentsDisplay.from_estimator(principal, ax=own)
    assert display.figure_ is figure
    for h in range(2):
        np.testing.assert_allclose(own[h].lines[0].get_ydata(), principal.components_[h])
    again = ComponentsDisplay(principal.components_, image_shape=SHAPE).plot()
    peak = np.abs(principal.components_).max()  # zero is in the middle of signed fields
    np.testing.assert_allclose(again.artists_[0].get_clim(), (-peak, peak))


def test_each_field_can_fill_its_own_scale():
    display = ComponentsDisplay([[0.0, 1], [0, 8]], image_shape=(1, 2)).plot(scale="own")
    assert [artist.get_clim() for artist in display.artists_] == [(0, 1), (0, 8)]


# ----------------------------------------------------------------------------------------------- convergence


def test_bound_and_temperature_are_drawn(model):
    display = ConvergenceDisplay.from_estimator(model, reference=-20.0)
    np.testing.assert_array_equal(display.bound_line_.get_ydata(), model.lower_bounds_)
    np.testing.assert_array_equal(display.bound_line_.get_xdata(), np.arange(len(model.lower_bounds_)))
    np.testing.assert_array_equal(display.temperature_line_.get_ydata(), model.temperatures_)
    assert display.temperature_line_ in display.temperature_ax_.lines
    assert np.ptp(model.temperatures_) > 0  # the fit was annealed
    assert display.ax_.lines[1].get_ydata() == [-20.0, -20.0]


def test_places_where_bounds_are_not_comparable_are_marked(monkeypatch):
    """Causes are found on 2000 rows; the bound of all rows, of which the others are empty, is another."""
    monkeypatch.setattr("multicause.search.sample.LEAST_ROWS", 2000)
    rows = np.zeros((2300, 9))
    rows[:2200] = make_bars(2200, size=3, noise="poisson", random_state=0).data
    model = MaximalCauses(6, noise="poisson", max_iter=60, random_state=0).fit(rows)
    starts, reasons = zip(*model.bound_changes_, strict=True)
    assert reasons == ("posterior Exact instead of Preselected", "all 2,300 rows instead of 2,000")
    display = ConvergenceDisplay.from_estimator(model)
    assert [line.get_xdata()[0] for line in display.change_lines_] == [start - 0.5 for start in starts]
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend[-2:] == [*reasons[-1:], "temperature"]
    assert display.ax_.get_ylabel() == "mean log evidence of a row"
    # After the last change, EM raises the bound.
    assert (np.diff(model.lower_bounds_[starts[-1] :]) >= -1e-12).all()


def test_a_constant_temperature_is_not_drawn():
    from matplotlib import pyplot

    _, own = pyplot.subplots()
    display = ConvergenceDisplay([-3.0, -2.0], temperatures=[1, 1]).plot(ax=own)
    assert display.ax_ is own
    assert display.temperature_ax_ is None
    assert len(own.figure.axes) == 1


# ------------------------------------------------------------------------------------------------- posterior


def test_the_posterior_of_a_row_is_drawn(model, bars):
    row = int(np.flatnonzero(bars.states.sum(axis=1) == 2)[0])
    display = PosteriorDisplay.from_estimator(model, bars.data, row=row, top=3, image_shape=SHAPE)
    data, reconstruction = map(pixels, display.artists_)
    np.testing.assert_allclose(data, bars.data[row])
    np.testing.assert_allclose(reconstruction, model.reconstruct(bars.data[[row]])[0])
    found = model.recognize(bars.data[[row]], top=3)
    np.testing.assert_allclose([bar.get_width() for bar in display.state_bars_], found.probabilities[0])
    labels = [label.get_text() for label in display.axes_[2].get_yticklabels()]
    assert labels == ["+".join(str(h) for h in range(6) if state[h]) or "none" for state in found.states[0]]
    np.testing.assert_allclose([bar.get_height() for bar in display.cause_bars_], model.transform(bars.data[[row]])[0])


def test_hardly_anything_is_not_stretched_to_full_contrast(model, bars):
    rows = np.concatenate([bars.data, np.full((1, 9), 1e-12)])
    display = PosteriorDisplay.from_estimator(model, rows, row=-1, image_shape=SHAPE)
    for artist in display.artists_:
        assert artist.get_clim()[1] >= 0.25 * bars.data.max()
    alone = PosteriorDisplay([0.0, 0], [1e-12, 0], [[0]], [1.0], [0.0], image_shape=(1, 2), limits=(0, 8)).plot()
    assert [artist.get_clim() for artist in alone.artists_] == [(0, 2), (0, 2)]


def test_the_last_row_can_be_named_from_the_end_and_drawn_as_a_line(model, bars):
    display = PosteriorDisplay.from_estimator(model, bars.data, row=-1, top=3)
    np.testing.assert_allclose(display.artists_[0].get_ydata(), bars.data[-1])


# -------------------------------------------------------------------------------------------------- recovery


def test_causes_are_above_their_components(model, bars):
    display = RecoveryDisplay.from_estimator(model, bars.causes, image_shape=SHAPE)
    expected = recovered_causes(model, bars.causes)
    assert display.axes_.shape == (2, len(bars.causes))
    assert display.found.sum() == expected.n_found
    np.testing.assert_allclose(display.errors, expected.errors)
    for c, h in enumerate(expected.mapping):
        np.testing.assert_allclose(pixels(display.artists_[0][c]), bars.causes[c])
        np.testing.assert_allclose(pixels(display.artists_[1][c]), model.components_[h])


def test_missing_causes_are_marked():
    """Two causes share a component, of which only the nearer has it; a third has a component that is far off."""
    causes = np.array([[10.0, 0, 0], [10, 1, 0], [0, 0, 10]])
    display = RecoveryDisplay(causes, [[10, 0.9, 0], [0, 9, 9]], [0, 0, 1]).plot()
    assert display.found.tolist() == [False, True, False]
    titles = [axes.get_title() for axes in display.axes_[1]]
    assert titles == ["missing: 0.3", "0: 0.033", "missing: 3.3"]
    colors = [axes.spines["top"].get_edgecolor() for axes in display.axes_[1]]
    assert colors[0] == colors[2] != colors[1]
    assert display.figure_.get_suptitle().startswith("1 of 3 causes found")


# ------------------------------------------------------------------------------------------------- animation


def test_fields_are_animated(tmp_path):
    """Fields grow brighter from picture to picture, and so does the GIF."""
    recorder = SimpleNamespace(fields=[np.full((2, 4), value) for value in (0.0, 2.0, 8.0)], iterations=[1, 2, 3])
    path = animate_fields(recorder, tmp_path / "fields.gif", image_shape=(2, 2), milliseconds=50, dpi=40)
    with Image.open(path) as picture:
        assert picture.n_frames == 3
        brightness, durations = [], []
        for frame in range(3):
            picture.seek(frame)
            grey = np.asarray(picture.convert("L"), dtype=float)
            brightness.append(grey[grey.shape[0] // 2 + 8, grey.shape[1] // 4])  # in the middle of the first field
            durations.append(picture.info["duration"])
    np.testing.assert_allclose(brightness, [0, 255 / 4, 255], atol=3)
    assert durations == [50, 50, 2000]
    assert [entry.name for entry in tmp_path.iterdir()] == ["fields.gif"]


def test_an_animation_of_a_fit_has_as_many_pictures_as_are_asked_for(model, recorder, tmp_path):
    assert len(recorder.fields) > 3
    path = animate_fields(recorder, str(tmp_path / "fields.gif"), most=3, dpi=30)
    with Image.open(path) as picture:
        assert picture.n_frames == 3


def test_states_of_an_autoencoder_are_drawn(bars):
    model = TruncatedAutoencoder(2, layers=(), max_iter=1, random_state=0).fit(bars.data)
    assert model.has_states
    assert model.has_probabilities
    display = PosteriorDisplay.from_estimator(model, bars.data, top=2)
    np.testing.assert_allclose(display.probabilities, model.recognize(bars.data[:1], top=2).probabilities[0])
    with pytest.raises(ValueError, match="RecoveryDisplay needs a model with the method score_single_causes"):
        RecoveryDisplay.from_estimator(model, bars.causes)


# ------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "draw",
    [
        ComponentsDisplay.from_estimator,
        ConvergenceDisplay.from_estimator,
        lambda model: PosteriorDisplay.from_estimator(model, np.ones((2, 9))),
        lambda model: RecoveryDisplay.from_estimator(model, np.ones((2, 9))),
    ],
)
def test_a_model_must_be_fitted(draw):
    with pytest.raises(NotFittedError):
        draw(MaximalCauses())


def test_shapes_must_fit(model, bars):
    message = r"image_shape=\(3, 4\) has 3·4 = 12 pixels, but components have 9 features"
    with pytest.raises(ValueError, match=message):
        ComponentsDisplay.from_estimator(model, image_shape=(3, 4))
    with pytest.raises(ValueError, match=r"12 pixels, but data and reconstruction have 9"):
        PosteriorDisplay.from_estimator(model, bars.data, image_shape=(3, 4))
    with pytest.raises(ValueError, match=r"12 pixels, but causes have 9"):
        RecoveryDisplay.from_estimator(model, bars.causes, image_shape=(3, 4))
    with pytest.raises(ValueError, match=r"must be a height and a width.*got 9"):
        ComponentsDisplay.from_estimator(model, image_shape=9)
    with pytest.raises(ValueError, match=r"row must be the number of a row of X, below 150; got 150"):
        PosteriorDisplay.from_estimator(model, bars.data, row=150)
    with pytest.raises(ValueError, match=r"temperatures must have shape \(2,\), as bounds; got \(3,\)"):
        ConvergenceDisplay([-1, -2], temperatures=[1, 2, 3])
    with pytest.raises(ValueError, match=r"mapping must have the number of a component, below 1"):
        RecoveryDisplay([[1, 2]], [[1, 2]], [1])
    with pytest.raises(ValueError, match=r"got states \(1, 3\), probabilities \(2,\), causes \(3,\)"):
        PosteriorDisplay([1], [1], [[0, 0, 1]], [0.5, 0.5], [0, 0, 1])
    with pytest.raises(ValueError, match=r"activity must have shape \(1,\), as components; got \(2,\)"):
        ComponentsDisplay([[1, 2]], activity=[1, 2])
    with pytest.raises(ValueError, match="components must be finite"):
        ComponentsDisplay([[1, np.nan]])


def test_one_axes_is_not_enough_for_many(model, bars):
    from matplotlib import pyplot

    _, own = pyplot.subplots()
    with pytest.raises(ValueError, match=r"6 axes are needed, in 1 rows and 6 columns; got one axes.*subplots\(1, 6\)"):
        ComponentsDisplay.from_estimator(model, ax=own)
    with pytest.raises(ValueError, match="4 axes are needed"):
        PosteriorDisplay.from_estimator(model, bars.data, ax=own)
    with pytest.raises(ValueError, match=r"12 axes are needed.*got 3 axes"):
        RecoveryDisplay.from_estimator(model, bars.causes, ax=[own] * 3)
    with pytest.raises(ValueError, match="One axes is needed; got 2"):
        ConvergenceDisplay([-1, -2]).plot([own, own])


def test_a_display_says_what_a_model_lacks(principal, bars):
    with pytest.raises(ValueError, match=r"PosteriorDisplay needs .* those of PrincipalComponents are real numbers"):
        PosteriorDisplay.from_estimator(principal, bars.data)
    with pytest.raises(ValueError, match=r"RecoveryDisplay needs .* those of PrincipalComponents are real numbers"):
        RecoveryDisplay.from_estimator(principal, bars.causes)
    energy = EnergyComponents(2)  # as one with more filters than dimensions is after a fit
    energy.components_, energy.lower_bounds_ = np.ones((2, 9)), np.full(3, np.nan)
    with pytest.raises(ValueError, match="This EnergyComponents has recorded no bound"):
        ConvergenceDisplay.from_estimator(energy)
    with pytest.raises(ValueError, match="EnergyComponents has no activity_ to sort by"):
        ComponentsDisplay.from_estimator(energy, sort="activity")
    with pytest.raises(ValueError, match="those of EnergyComponents are real numbers"):
        PosteriorDisplay.from_estimator(energy, bars.data)


def test_unknown_words_are_refused(model):
    with pytest.raises(ValueError, match="sort must be one of 'activity'; got 'size'"):
        ComponentsDisplay.from_estimator(model, sort="size")
    with pytest.raises(ValueError, match="scale must be one of 'common', 'own'; got 'mine'"):
        ComponentsDisplay.from_estimator(model, scale="mine")
    with pytest.raises(ValueError, match="columns must be a positive number; got 0"):
        ComponentsDisplay.from_estimator(model, columns=0)
    with pytest.raises(ValueError, match="most must be a positive number of components"):
        ComponentsDisplay.from_estimator(model, most=0)


def test_an_animation_needs_fields_and_a_gif(model, tmp_path):
    with pytest.raises(ValueError, match=r"The recorder has no fields yet: give it to a model with set_callbacks"):
        animate_fields(FieldRecorder(), tmp_path / "fields.gif")
    with pytest.raises(TypeError, match="recorder must be a multicause.callbacks.FieldRecorder; got MaximalCauses"):
        animate_fields(model, tmp_path / "fields.gif")
    with pytest.raises(ValueError, match=r"An animation is written as .gif; got 'fields.mp4'"):
        animate_fields(FieldRecorder(), tmp_path / "fields.mp4")
    filled = SimpleNamespace(fields=[np.ones((1, 4))], iterations=[1])
    with pytest.raises(ValueError, match="milliseconds must be a positive number; got 0"):
        animate_fields(filled, tmp_path / "fields.gif", milliseconds=0)
    with pytest.raises(FileNotFoundError, match="the folder .* does not exist"):
        animate_fields(filled, tmp_path / "nowhere" / "fields.gif", dpi=20)
    assert list(tmp_path.iterdir()) == []


def test_matplotlib_is_named_where_it_is_missing(monkeypatch):
    """It is imported when something is drawn, not before."""
    display = ComponentsDisplay([[1, 2]])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"matplotlib is needed for plots .* pip install 'multicause\[app\]'"):
        display.plot()


def test_images_of_the_wrong_size():
    with pytest.raises(ValueError, match=r"image_shape=\(2, 3\) has 2·3 = 6 pixels, but rows have 5 features"):
        draw_images(None, [[1, 2, 3, 4, 5]], (2, 3))
    with pytest.raises(ValueError, match=r"two axes, \(n, n_features\); got shape \(0, 6\)"):
        draw_images(None, np.zeros((0, 6)), (2, 3))
