"""Numbers of the report, compared with those of the model."""

from types import SimpleNamespace

import numpy as np
import pytest

import multicause
from multicause.app.report import write_report
from multicause.app.report.contents import most_explained, rows_using
from multicause.metrics import reconstruction_quality
from tests.app.report.conftest import contents_in, decoded

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_pictures_are_those_of_the_model(bars, causes, contents):
    components, rows = contents["components"], contents["rows"]
    step = (np.ptp(causes.components_, axis=1) / 255)[:, None]
    assert (np.abs(decoded(components) - causes.components_) <= 0.51 * step).all()
    shown = bars.data[rows["numbers"]]
    step = (np.array(rows["high"]) - np.array(rows["low"]))[:, None] / 255
    assert (np.abs(decoded(rows) - shown) <= 0.51 * step).all()
    assert (np.abs(decoded(rows, rows["reconstructions"]) - causes.reconstruct(shown)) <= 0.51 * step).all()


def test_causes_and_states_of_rows_are_those_of_the_model(bars, causes, contents):
    probabilities = causes.transform(bars.data)
    np.testing.assert_allclose(contents["components"]["activity"], probabilities.mean(axis=0), rtol=1e-5)
    rows = contents["rows"]
    for h, users in enumerate(contents["components"]["users"]):
        found = probabilities[[rows["numbers"][r] for r in users], h]
        # Differences below a hundredth of the largest do not count.
        assert (np.diff(np.rint(100 * found / probabilities[:, h].max())) <= 0).all()
        assert found[-1] >= np.sort(probabilities[:, h])[-len(users)] - 0.01
    recognized = causes.recognize(bars.data[rows["numbers"]], top=2)
    for r, states in enumerate(rows["states"]):
        assert states[0][1] == pytest.approx(recognized.probabilities[r, 0], rel=1e-5)
        assert states[0][0] == np.flatnonzero(recognized.states[r, 0]).tolist()
        assert all(
            value == pytest.approx(probabilities[rows["numbers"][r], h], rel=1e-5) for h, value in rows["causes"][r]
        )


def test_the_row_of_which_causes_explain_most_is_shown_first(bars, causes, contents):
    stub = SimpleNamespace(inverse_transform=lambda causes: causes @ np.array([[1.0, 0.0]]))
    X = np.array([[0.1, 0.0], [0.0, 9.0], [2.0, 0.0], [3.0, np.nan]])
    strengths = np.nan_to_num(X[:, :1])
    assert most_explained(stub, X, strengths, np.arange(4)) == 3
    assert most_explained(stub, X, strengths, np.array([0, 1, 2])) == 2
    rows = contents["rows"]
    assert rows["first"] in rows["examples"]
    again = causes.reconstruct(bars.data)
    explained = (bars.data**2).sum(axis=1) - ((bars.data - again) ** 2).sum(axis=1)
    numbers = [rows["numbers"][place] for place in rows["examples"]]
    assert rows["numbers"][rows["first"]] == numbers[np.argmax(explained[numbers])]


def test_curves_are_the_course_of_learning(bars, causes, contents):
    labels = ["mean lower bound of the log evidence of a row", "temperature", "share of rows used for learning"]
    assert [curve["label"] for curve in contents["curves"]] == labels
    assert contents["curves"][1]["values"] == pytest.approx(causes.temperatures_, rel=1e-5)
    kept = contents["curves"][2]["values"]
    assert (kept[0], len(kept)) == (1, len(causes.lower_bounds_))
    # Rows that were kept at last are those that the model calls explained.
    assert kept[-1] == pytest.approx(causes.is_explained(bars.data).mean(), rel=1e-5)
    assert kept[-1] < 1


def test_errors_of_rows_and_the_signal_to_noise_ratio(bars, causes, contents):
    shown = bars.data[contents["rows"]["numbers"]]
    expected = np.sqrt(((shown - causes.reconstruct(shown)) ** 2).mean(axis=1))
    np.testing.assert_allclose(contents["rows"]["errors"], expected, rtol=1e-5)
    error = ((bars.data - causes.reconstruct(bars.data)) ** 2).sum()
    ratio = 10 * np.log10(((bars.data - bars.data.mean(axis=0)) ** 2).sum() / error)
    assert dict(contents["facts"])["signal-to-noise ratio"] == f"{ratio:.1f} dB".replace("-", "−")


def test_energy_of_principal_components_is_their_share_of_the_variance(tmp_path):
    X = 5 + np.random.RandomState(0).normal(size=(200, 3)) * [3.0, 2.0, 1.0]
    model = multicause.PrincipalComponents(3).fit(X)
    found = contents_in(write_report(model, X, tmp_path / "report.html", feature_names=["a", "b", "c"]))
    variances = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    np.testing.assert_allclose(found["components"]["energy"], variances / variances.sum(), atol=1e-3)
    assert found["rows"]["states"] is None
    assert found["components"]["features"][0][0][0] == "a"
    assert found["curves"] == []  # of a single value
    assert dict(found["facts"])["mean log evidence"] == f"{model.lower_bound_:.4g}".replace("-", "−")


def test_energy_of_clusters_is_that_of_their_centres(tmp_path):
    X = np.repeat([[30.0, 1.0], [1.0, 40.0]], [10, 20], axis=0) + np.random.RandomState(0).normal(size=(30, 2))
    model = multicause.KMeans(2, random_state=0).fit(X)
    found = contents_in(write_report(model, X, tmp_path / "report.html"))
    counts = np.bincount(model.predict(X))
    expected = counts * (model.components_**2).sum(axis=1) / (X**2).sum()
    np.testing.assert_allclose(found["components"]["energy"], expected, rtol=1e-3)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("SparseCoding", {}),
        ("IndependentComponents", {}),
        ("HelmholtzMachine", {}),
        ("MixtureOfPoissons", {}),
        ("EnergyComponents", {"layers": (2,)}),
    ],
)
def test_every_family_has_a_report(name, settings, bars, tmp_path):
    X = (bars.data[:40] > 3).astype(float) if name == "HelmholtzMachine" else bars.data[:40]
    model = getattr(multicause, name)(2, max_iter=2, random_state=0, **settings).fit(X)
    found = contents_in(write_report(model, X, tmp_path / "report.html", image_shape=(5, 5)))
    assert found["model"] == name
    assert (found["rows"]["reconstructions"] is None) == (name == "EnergyComponents")
    assert (found["rows"]["states"] is not None) == (name in ("HelmholtzMachine", "MixtureOfPoissons"))
    assert len(found["components"]["energy"]) == 2


def test_numbers_are_called_what_they_are(bars, tmp_path):
    """A sparse code knows no evidence, and K-means none but that of the nearest centre."""
    for name, label in {
        "SparseCoding": "log joint density of the row and its most probable causes",
        "KMeans": "log probability together with the most probable cause",
        "MixtureOfPoissons": "log evidence",
    }.items():
        model = getattr(multicause, name)(2, max_iter=2, random_state=0).fit(bars.data[:40])
        found = contents_in(write_report(model, bars.data[:40], tmp_path / "report.html"))
        assert f"mean {label}" in dict(found["facts"])
        assert found["curves"][0]["label"] == f"mean {label} of a row"
        assert found["score"] == label


def test_flat_reconstructions_are_not_called_good(tmp_path):
    """One component explains the level of rows, which is most of the variance, and nothing of their form."""
    random = np.random.RandomState(0)
    X = random.normal(0, 10, (200, 1)) + random.normal(size=(200, 6))
    model = multicause.PrincipalComponents(1, random_state=0).fit(X)
    facts = dict(contents_in(write_report(model, X, tmp_path / "report.html"))["facts"])
    quality = reconstruction_quality(model, X)
    assert facts["variance explained, R²"] == f"{quality.r2:.3f}" > "0.98"
    assert facts["R² without row means"] == f"{quality.r2_without_row_means:.3f}".replace("-", "−")
    assert quality.r2_without_row_means < 0.05


@pytest.mark.parametrize("n_others", [5, 500])
def test_rows_that_use_a_component_most_are_those_that_it_explains(n_others):
    """All rows use it with practical certainty; the first ones show another one that is stronger."""
    components = np.array([[1.0, 1, 0, 0], [0, 0, 9, 9]])
    causes = np.array([[1.0, 1]] * n_others + [[1 - 1e-9, 0]] * 3 + [[0.2, 0]])
    model = SimpleNamespace(components_=components, inverse_transform=lambda S: np.asarray(S) @ components)
    X = causes @ components + 0.1 * np.random.RandomState(0).normal(size=(len(causes), 4))
    best = rows_using(model, X, causes, causes, 0, np.zeros((1, 4)))
    assert sorted(best[:3]) == [n_others, n_others + 1, n_others + 2]
    assert set(best[3:8]) <= {*range(n_others), n_others + 3}
    if n_others == 5:
        assert best[-1] == len(causes) - 1  # a smaller probability comes last


def test_a_model_of_a_stream_has_no_remedy_for_its_end(tmp_path):
    X = np.random.RandomState(0).normal(size=(30, 2))
    streamed = multicause.MixtureOfGaussians(2, random_state=0).partial_fit(X)
    stopped = multicause.MixtureOfGaussians(2, max_iter=1, tol=0, random_state=0).fit(X)
    assert streamed.outcome_ == stopped.outcome_ == "max_iter"
    assert contents_in(write_report(streamed, X, tmp_path / "a.html"))["warnings"] == []
    assert "Raise max_iter" in contents_in(write_report(stopped, X, tmp_path / "b.html"))["warnings"][0]
