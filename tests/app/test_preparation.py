"""Preparation of rows and the choice of a model by the kind of data."""

import inspect
import json
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.decomposition import NMF, PCA
from sklearn.preprocessing import StandardScaler

import multicause
from multicause.app.cli.choosing import choose
from multicause.app.preparation import OF_ROWS, PreparedModel, RowPreparation, fit_preparation
from multicause.metrics import reconstruction_quality
from tests.app.cli.calls import call, result_of


@pytest.fixture(scope="module")
def rows():
    random = np.random.RandomState(0)
    return 5 + random.laplace(size=(80, 5)) @ random.normal(size=(5, 5)) * [1, 10, 100, 1, 0.1]


def test_steps_are_those_of_scikit_learn_and_can_be_undone(rows):
    standard = fit_preparation(rows, center=False, standardize=True, whiten=False)
    np.testing.assert_allclose(standard.apply(rows), StandardScaler().fit_transform(rows), atol=1e-12)
    white = fit_preparation(rows, center=True, standardize=False, whiten=True)
    # Row means are gone, so that one direction has no variance, and the others have nearly one.
    variances = np.linalg.eigvalsh(np.cov(white.apply(rows).T, bias=True))
    assert variances[0] < 1e-9
    assert variances[-1] == pytest.approx(1, abs=0.01)
    for steps in (standard, white, RowPreparation(center=True)):
        np.testing.assert_allclose(steps.undo(steps.apply(rows), steps.levels(rows)), rows, rtol=1e-9)
    assert not RowPreparation().changes_rows


def test_missing_values_and_constant_columns(rows):
    gaps = rows.copy()
    gaps[0, 1] = np.nan
    gaps[:, 3] = 7.0
    steps = fit_preparation(gaps, center=False, standardize=True, whiten=False)
    np.testing.assert_allclose(steps.apply(gaps)[:, 3], 0)
    np.testing.assert_allclose(np.nanstd(steps.apply(gaps)[:, 1]), 1)
    assert RowPreparation(center=True).levels(gaps)[0, 0] == pytest.approx(np.nanmean(gaps[0]))
    with pytest.raises(ValueError, match="--whiten needs complete rows"):
        fit_preparation(gaps, center=False, standardize=False, whiten=True)
    with pytest.raises(ValueError, match="either --standardize or --whiten"):
        fit_preparation(rows, center=False, standardize=True, whiten=True)


@pytest.mark.parametrize(("standardize", "whiten"), [(True, False), (False, True), (False, False)])
def test_a_prepared_model_works_in_the_units_of_the_data(rows, standardize, whiten):
    """Of as many principal components as columns, nothing is lost, whatever the preparation."""
    steps = fit_preparation(rows, center=True, standardize=standardize, whiten=whiten)
    model = multicause.PrincipalComponents(4, random_state=0).fit(steps.apply(rows))
    prepared = PreparedModel(model, steps)
    np.testing.assert_allclose(prepared.reconstruct(rows), rows, rtol=1e-6, atol=1e-6)
    centred = rows - rows.mean(axis=1, keepdims=True)
    causes = prepared.transform(rows)
    np.testing.assert_allclose(prepared.inverse_transform(causes), centred, rtol=1e-6, atol=1e-5)
    # Data are the mean and a sum of components.
    empty = prepared.inverse_transform(np.zeros((1, 4)))
    np.testing.assert_allclose(empty + causes @ prepared.components_, centred, rtol=1e-6, atol=1e-5)
    assert reconstruction_quality(prepared, rows).r2 == pytest.approx(1)
    assert prepared.score(rows) == pytest.approx(np.mean(model.score_samples(steps.apply(rows))))
    assert not hasattr(PreparedModel(multicause.EnergyComponents(2), steps), "reconstruct")


@pytest.mark.parametrize("name", [name for name in multicause.__all__ if isinstance(getattr(multicause, name), type)])
def test_every_method_that_takes_rows_gets_prepared_ones(name):
    """Except for those that learn."""
    functions = inspect.getmembers(getattr(multicause, name), inspect.isfunction)
    of_rows = {
        name
        for name, function in functions
        if not name.startswith("_") and "X" in inspect.signature(function).parameters
    }
    assert of_rows - OF_ROWS <= {"fit", "partial_fit", "fit_transform", "fit_predict", "reconstruct", "impute"}


def test_clusters_of_prepared_rows_are_predicted():
    rows = np.random.RandomState(0).normal(size=(60, 2)) * [1, 100] + [[0, 0], [5, 0]] * 30
    preparation = fit_preparation(rows, center=False, standardize=True, whiten=False)
    model = multicause.KMeans(2, random_state=0).fit(preparation.apply(rows))
    labels = PreparedModel(model, preparation).predict(rows)
    np.testing.assert_array_equal(labels, model.predict(preparation.apply(rows)))
    assert (labels != model.predict(rows)).any()


def test_the_noise_of_a_prepared_model_is_in_the_units_of_the_data():
    """White noise of prepared rows, taken back to the data, has this variance on average over the columns."""
    random = np.random.RandomState(0)
    noise, inverse = random.normal(size=(100_000, 3)), random.normal(size=(3, 3))
    for given, factor in ((0.5, inverse), (0.5, inverse[0]), (np.array([0.1, 0.5, 2.0]), inverse)):
        model = PreparedModel(
            SimpleNamespace(noise_variance_=given), RowPreparation(False, np.zeros(3), factor, factor)
        )
        rows = model.preparation.undo(noise * np.sqrt(given))
        assert model.noise_variance_ == pytest.approx((rows**2).mean(), rel=0.03)  # ten standard errors


def test_imputed_rows_keep_what_was_observed(rows):
    gaps = rows.copy()
    gaps[::7, 2] = np.nan
    steps = fit_preparation(gaps, center=False, standardize=True, whiten=False)
    model = multicause.FactorAnalysis(2, random_state=0, max_iter=20).fit(steps.apply(gaps))
    found = PreparedModel(model, steps).impute(gaps)
    observed = ~np.isnan(gaps)
    np.testing.assert_array_equal(found[observed], gaps[observed])
    errors = np.abs(found - rows)[~observed]
    assert errors.mean() < np.abs(rows[:, 2] - np.nanmean(gaps[:, 2]))[::7].mean()


def chosen(kind, rows, numbers=(2,), given=None, **asked):
    return choose("auto", kind, np.asarray(rows, dtype=float), numbers=[*numbers], given=given or {}, **asked)


def test_the_model_is_chosen_by_the_kind_of_data():
    random = np.random.RandomState(0)
    patches = random.uniform(size=(9, 16))
    assert (chosen("patches", patches).name, chosen("patches", patches).center) == ("ica", True)
    # Likelihoods of independent components on different numbers of axes cannot be compared.
    assert chosen("patches", patches, (2, 4)).name == "slabs"
    assert chosen("patches", patches, (20,)).name == "slabs"
    assert chosen("patches", patches, given={"noise": "poisson"}).name == "maximal"
    assert chosen("patches", patches, given={"posterior": "evolved"}).name == "maximal"  # slabs cannot have it
    assert not chosen("patches", patches, center=False).center
    assert chosen("spectrogram", patches).name == "maximal"
    assert chosen("waveform", patches - 0.5).name == "slabs"
    counts = chosen("table", random.poisson(3, (9, 4)))
    assert (counts.name, counts.settings) == ("nonnegative", {"noise": "poisson"})
    assert chosen("table", random.poisson(0.2, (9, 4)) > 0).name == "noisy-or"
    measured = chosen("table", random.normal(size=(9, 4)))
    assert (measured.name, measured.standardize) == ("slabs", True)
    assert measured.settings == {"noise": "diagonal_gaussian", "n_init": 5}
    many = chosen("table", np.broadcast_to(random.normal(size=4), (300_000, 4)))
    assert many.settings == {"noise": "diagonal_gaussian"}
    assert chosen("table", random.randint(0, 4000, (9, 4))).name == "slabs"  # too large to be counts
    assert (chosen("table", patches, whiten=True).whiten, chosen("table", patches, whiten=True).standardize) == (
        True,
        False,
    )
    large = chosen("table", patches, in_memory=False)
    assert (large.name, large.standardize) == ("maximal", False)
    assert chosen("table", patches - 0.5, in_memory=False).name == "linear"
    assert all(choice.reasons for choice in (counts, measured))


@pytest.fixture(scope="module")
def photo_run(tmp_path_factory):
    """A run on a photograph with nothing but defaults."""
    skimage_data = pytest.importorskip("skimage.data", reason="scikit-image is not installed")
    from skimage.io import imsave

    path = tmp_path_factory.mktemp("photo")
    (path / "photos").mkdir()
    imsave(path / "photos" / "camera.png", skimage_data.camera(), check_contrast=False)
    options = ["--patches", "8x8", "--count", 3000, "--components", 16]
    return path, result_of("fit", path / "photos", *options, "--out", path / "run")


def test_patches_are_explained_better_than_by_pca_and_nmf(photo_run):
    """With as many components, on the same patches of a photograph, within patches."""
    from multicause.datasets.reading import Reading, read_data

    path, found = photo_run
    X = read_data(path / "photos", Reading(patches=(8, 8), count=3000)).rows
    centred = X - X.mean(axis=1, keepdims=True)
    total = ((centred - centred.mean(axis=0)) ** 2).sum()
    for peer in (PCA(16, random_state=0), NMF(16, init="nndsvda", max_iter=60, random_state=0)):
        with np.errstate(all="ignore"):
            again = peer.inverse_transform(peer.fit_transform(X))
        again -= again.mean(axis=1, keepdims=True)
        assert found["r2_without_row_means"] >= 1 - ((centred - again) ** 2).sum() / total
    assert found["estimator"] == "IndependentComponents"
    assert found["preparation"] == {"center": True, "standardize": False, "whiten": False}
    # All components are in use and none is flat.
    components = multicause.load(path / "run" / "model.multicause").components_
    assert (np.ptp(components, axis=1) > 0.1 * np.ptp(components)).all()


def test_a_prepared_run_is_used_by_all_commands(photo_run, tmp_path):
    from skimage.io import imread

    path, _ = photo_run
    photo, run = path / "photos" / "camera.png", path / "run"
    assert "What was chosen, and why" in (run / "report.html").read_text()
    result_of("reconstruct", run, photo, "--step", 4, "--out", tmp_path / "again.png")
    before, after = imread(photo).astype(float), imread(tmp_path / "again.png").astype(float)
    assert ((before - after) ** 2).mean() < 0.02 * before.var()
    result_of("sample", run, "--count", 5, "--out", tmp_path / "new.npy")
    assert np.abs(np.load(tmp_path / "new.npy").mean(axis=1)).max() < 1e-6  # as those of centred patches


def test_causes_of_a_table_are_found_in_columns_of_any_units(tmp_path):
    """Three sparse causes, and noise that is equally strong in all columns until they are standardized."""
    random = np.random.RandomState(3)  # one start with equal noise ends in a local optimum here
    causes, weights = random.normal(size=(300, 3)) * (random.uniform(size=(300, 3)) < 0.4), random.normal(size=(3, 6))
    X = causes @ weights + 0.2 * random.normal(size=(300, 6))
    np.savetxt(tmp_path / "values.csv", X, delimiter=",", header="a,b,c,d,e,f")
    found = result_of("fit", tmp_path / "values.csv", "--components", 3, "--no-report", "--out", tmp_path / "run")
    assert (found["parameters"]["noise"], found["parameters"]["n_init"]) == ("diagonal_gaussian", 5)
    result_of("transform", tmp_path / "run", tmp_path / "values.csv", "--out", tmp_path / "causes.npy")
    related = np.abs(np.corrcoef(causes.T, np.load(tmp_path / "causes.npy").T)[:3, 3:])
    assert related.max(axis=1).min() > 0.95
    assert sorted(related.argmax(axis=1)) == [0, 1, 2]


def test_counts_and_measurements_in_tables(tmp_path):
    random = np.random.RandomState(0)
    np.savetxt(tmp_path / "counts.csv", random.poisson([1, 5, 9], (40, 3)), delimiter=",", fmt="%d", header="a,b,c")
    np.savetxt(tmp_path / "values.csv", random.normal([0, 99, 1], [1, 50, 0.1], (40, 3)), delimiter=",", header="a,b,c")
    options = ["--components", 2, "--iterations", 3, "--no-report"]
    found = result_of("fit", tmp_path / "counts.csv", *options, "--out", tmp_path / "counts")
    assert (found["estimator"], found["parameters"]["noise"]) == ("NonnegativeCauses", "poisson")
    found = result_of("fit", tmp_path / "values.csv", *options, "--out", tmp_path / "values")
    assert (found["estimator"], found["preparation"]["standardize"]) == ("SpikeAndSlabCauses", True)
    result_of("reconstruct", tmp_path / "values", tmp_path / "values.csv", "--out", tmp_path / "again.npy")
    assert np.load(tmp_path / "again.npy").mean(axis=0) == pytest.approx([0, 99, 1], abs=30)
    (tmp_path / "values" / "preparation.safetensors").unlink()
    run = call("transform", tmp_path / "values", tmp_path / "values.csv", "--out", tmp_path / "x.npy")
    assert "has no preparation.safetensors" in run.stderr
    assert json.loads((tmp_path / "values" / "settings.json").read_text())["reasons"]
