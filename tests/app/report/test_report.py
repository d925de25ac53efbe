"""The report: its numbers against the model's, and the page in a real browser."""

import base64
import json
import os
import re
import shutil
import subprocess
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
from sklearn.decomposition import PCA

import multicause
from multicause.annealing import LinearCooling
from multicause.app.report import write_report
from multicause.app.report.contents import most_explained, rows_using
from multicause.app.report.encoding import shrunk
from multicause.app.report.runs import ComparedRun, matched_components, write_runs_comparison
from multicause.datasets import make_bars
from multicause.metrics import reconstruction_quality
from multicause.posteriors import Preselected

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

NASTY = "</script><script>alert(1)</script>"


def contents_in(path):
    """What the script of a page reads."""
    return json.loads(re.search(r'id="contents">(.*?)</script>', path.read_text(), re.S)[1])


def decoded(source, text=None):
    """Rows from the bytes of a page, as its script reads them."""
    levels = np.frombuffer(base64.b64decode(source["bytes"] if text is None else text), np.uint8)
    low, high = np.array(source["low"])[:, None], np.array(source["high"])[:, None]
    return low + levels.reshape(len(low), -1) / 255 * (high - low)


@pytest.fixture(scope="module")
def bars():
    return make_bars(80, noise="poisson", random_state=0)


@pytest.fixture(scope="module")
def causes(bars):
    """Annealed, and at the end learned from those rows that two causes explain."""
    parts = {"annealing": LinearCooling(4.0, n_iter=8), "posterior": Preselected(3, 2), "noise": "poisson"}
    return multicause.MaximalCauses(4, **parts, max_iter=8, random_state=0).fit(bars.data)


@pytest.fixture(scope="module")
def written(bars, causes, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(causes, bars.data, path, image_shape=(5, 5), title="Bars", warnings=["Mind the gap."])


@pytest.fixture(scope="module")
def contents(written):
    return contents_in(written)


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


def test_large_pictures_are_shrunk_by_means():
    rows = np.arange(2 * 5 * 4, dtype=float).reshape(2, 20)
    small, shape = shrunk(rows, (5, 4), 2)
    assert shape == (3, 2)
    images = rows.reshape(2, 5, 4)
    np.testing.assert_allclose(small[0, 0], images[0, :2, :2].mean())
    np.testing.assert_allclose(small[1, 5], images[1, 4:, 2:].mean())
    flat, shape = shrunk(rows, (1, 20), 3)
    assert shape == (1, 7)
    np.testing.assert_allclose(flat[0, 6], rows[0, 18:].mean())


def test_names_and_titles_do_no_harm_and_nothing_is_loaded(tmp_path):
    X = pandas.DataFrame(np.random.RandomState(0).normal(size=(20, 2)), columns=[NASTY, "b"])
    model = multicause.KMeans(2, random_state=0).fit(X)
    text = write_report(model, X, tmp_path / "report.html", title=NASTY, warnings=[NASTY]).read_text()
    assert "<script>alert" not in text
    assert text.count("<script") == 2  # the contents and the script of the page
    assert not re.search(r"(src|href)=[\"'](?!data:)", text)
    assert "default-src 'none'" in text


def test_what_does_not_fit_is_refused(bars, causes, tmp_path):
    for settings, message in [
        ({"image_shape": (5, 4)}, r"image_shape=\(5, 4\) has 5·4 = 20 pixels, but rows have 25 features"),
        ({"image_shape": 25}, "image_shape must be a height and a width"),
        ({"kind": "patches"}, "kind='patches' needs an image_shape"),
        ({"kind": "film"}, "Unknown kind 'film'. Known: table"),
        ({"feature_names": ["a"]}, "feature_names must have 25 names; got 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            write_report(causes, bars.data, tmp_path / "x.html", **settings)
    with pytest.raises(ValueError, match="X must have the 25 features"):
        write_report(causes, bars.data[:, :3], tmp_path / "x.html")
    with pytest.raises(TypeError, match="must be a fitted estimator of multicause; got PCA"):
        write_report(PCA(2).fit(bars.data), bars.data, tmp_path / "x.html")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        write_report(causes, bars.data, tmp_path / "no" / "x.html")
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def browser():
    """Chromium of the system; nothing is downloaded."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: pip install playwright"
    )
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = next((found for found in map(shutil.which, names) if found), None)
    if path is None:
        pytest.skip("No Chromium is installed; Debian has it as apt-get install chromium")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def page_of(browser):
    """Opens a file and collects all that goes wrong in it."""

    def opened(path, **settings):
        page = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings}).new_page()
        page.problems = []
        page.on("console", lambda message: page.problems.append(message.text))
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("request", lambda request: page.problems.append(request.url) if request.url[:4] == "http" else None)
        page.goto(path.as_uri())
        return page

    return opened


def order_of(page):
    return [int(tile.get_attribute("data-index")) for tile in page.query_selector_all("#grid .tile")]


def test_sorting_reorders_by_click_and_by_key(written, page_of, contents):
    page = page_of(written)
    assert page.title() == "Bars"
    assert page.locator(".warnings").inner_text().startswith("Mind the gap.")
    numbers = contents["components"]
    assert order_of(page) == np.argsort(-np.array(numbers["energy"]), kind="stable").tolist()
    page.get_by_label("activity", exact=True).check(force=True)
    assert order_of(page) == np.argsort(-np.array(numbers["activity"]), kind="stable").tolist()
    page.keyboard.press("ArrowRight")  # of radio buttons: the next one
    assert order_of(page) == [0, 1, 2, 3]
    assert page.locator("#said").inner_text() == "Sorted by number"
    assert page.problems == []


def test_choosing_components_and_rows(written, page_of, contents):
    page = page_of(written)
    assert f"Row {contents['rows']['numbers'][contents['rows']['first']]}" in page.locator("#row").inner_text()
    tile = page.get_by_role("button", name=re.compile("^Component 2, .* energy explained, .* activity$"))
    tile.focus()
    page.keyboard.press("Enter")
    assert page.locator("#panel-title").inner_text() == "Component 2"
    assert tile.get_attribute("aria-pressed") == "true"
    users = [int(user.get_attribute("data-row")) for user in page.query_selector_all("#users .tile")]
    assert users == [contents["rows"]["numbers"][r] for r in contents["components"]["users"][2]]
    page.locator("#users .tile").first.click()
    place = contents["components"]["users"][2][0]
    assert f"Row {users[0]}" in page.locator("#row").inner_text()
    named = [button.get_attribute("aria-label") for button in page.query_selector_all("#causes button")]
    assert [int(text.split()[1].rstrip(":")) for text in named] == [h for h, _ in contents["rows"]["causes"][place]]
    assert page.locator("#states .state").count() == 4
    page.locator("#causes button").first.click()
    assert page.locator("#panel-title").inner_text() == f"Component {contents['rows']['causes'][place][0][0]}"
    assert page.locator("#curves svg").count() == 3
    assert page.problems == []
    # The pixels of a tile are those of the model: the strongest weight is white.
    pixels = (
        "() => {const c = document.querySelector('[data-index=\"2\"] canvas');"
        "const d = c.getContext('2d').getImageData(0, 0, 5, 5).data; let best = 0;"
        "for (let i = 0; i < 25; i += 1) if (d[4 * i] > d[4 * best]) best = i; return [best, d[4 * best]];}"
    )
    assert page.evaluate(pixels) == [int(np.argmax(decoded(contents["components"])[2])), 255]
    page.get_by_label("Scale").select_option("common")
    highest = contents["components"]["high"]
    assert page.evaluate(pixels)[1] == pytest.approx(255 * highest[2] / max(highest), abs=1)


def test_dark_by_system_and_by_button(written, page_of):
    background = "getComputedStyle(document.body).backgroundColor"
    light, dark = page_of(written), page_of(written, color_scheme="dark")
    first = light.evaluate(background)
    assert first != dark.evaluate(background)
    light.get_by_role("button", name="Switch between light and dark").click()
    assert light.evaluate(background) == dark.evaluate(background)
    light.keyboard.press("Enter")
    assert light.evaluate(background) == first
    assert light.problems == dark.problems == []


@pytest.mark.parametrize("width", [390, 1280])
def test_numbers_and_names_stay_on_one_line(page_of, tmp_path, width):
    X = np.random.RandomState(0).laplace(size=(300, 6)) * 0.0912
    model = multicause.IndependentComponents(random_state=0)
    page = page_of(
        write_report(model.fit(X), X, tmp_path / "report.html", title="IndependentComponents: photos"),
        viewport={"width": width, "height": 900},
    )
    # Each box around a text that is broken within a word is a line of its own.
    lines = """(found) => found.map((element) => {
      const range = document.createRange(); range.selectNodeContents(element);
      return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size; })"""
    numbers = page.eval_on_selector_all("#causes .number", lines)
    assert len(numbers) == 6
    assert set(numbers) == {1}
    assert set(page.eval_on_selector_all(".settings th", lines)) == {1}
    widest = page.evaluate(
        """() => { const h = document.querySelector("h1"); const range = document.createRange();
        range.setStart(h.firstChild, 0); range.setEnd(h.firstChild, "IndependentComponents".length);
        return range.getClientRects().length; }"""
    )
    assert widest == 1


def test_a_phone_needs_no_sideways_scrolling(written, page_of):
    page = page_of(written, viewport={"width": 340, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 340
    page.locator("#grid .tile").nth(1).click()
    assert page.locator("#panel").bounding_box()["y"] < 700  # what was asked for is in sight
    assert page.evaluate("document.documentElement.scrollWidth") <= 340
    assert page.problems == []


def test_forty_thousand_rows_and_a_hundred_components_open_in_a_second(page_of, tmp_path):
    X = np.random.RandomState(0).uniform(size=(40_000, 100)).astype(np.float32)
    model = multicause.KMeans(100, max_iter=1, init=X[:100], random_state=0).fit(X)
    path = write_report(model, X, tmp_path / "large.html", image_shape=(10, 10))
    assert path.stat().st_size < 5e6
    took = "performance.getEntriesByType('navigation')[0].loadEventEnd"
    assert min(page_of(path).evaluate(took) for _ in range(3)) < 1000
    assert page_of(path).locator("#grid .tile").count() == 100


def downloaded(page, tmp_path, label):
    """The file that a button of the page saves."""
    with page.expect_download() as started:
        page.get_by_label(label, exact=True).click()
    path = tmp_path / started.value.suggested_filename
    started.value.save_as(path)
    return path


def test_components_rows_and_figures_can_be_downloaded(written, causes, contents, page_of, tmp_path):
    page = page_of(written, accept_downloads=True)
    components = np.load(downloaded(page, tmp_path, "Download components as npy"))
    np.testing.assert_allclose(components, causes.components_, rtol=1e-6, atol=1e-30)
    table = pandas.read_csv(downloaded(page, tmp_path, "Download components as csv"))
    np.testing.assert_allclose(table.to_numpy(), causes.components_, rtol=1e-6, atol=1e-30)
    assert downloaded(page, tmp_path, "Download components as PNG").read_bytes().startswith(b"\x89PNG")
    page.locator("summary").click()
    rows = pandas.read_csv(downloaded(page, tmp_path, "Download the table of rows as csv"))
    assert rows["row"].tolist() == contents["rows"]["numbers"]
    np.testing.assert_allclose(rows["root mean square error"], contents["rows"]["errors"])
    label = contents["curves"][0]["label"]
    drawing = downloaded(page, tmp_path, f"Download as SVG: {label}").read_text()
    assert drawing.startswith("<svg")
    assert "<path" in drawing
    assert page.problems == []


def test_errors_of_rows_and_the_signal_to_noise_ratio(bars, causes, contents):
    shown = bars.data[contents["rows"]["numbers"]]
    expected = np.sqrt(((shown - causes.reconstruct(shown)) ** 2).mean(axis=1))
    np.testing.assert_allclose(contents["rows"]["errors"], expected, rtol=1e-5)
    error = ((bars.data - causes.reconstruct(bars.data)) ** 2).sum()
    ratio = 10 * np.log10(((bars.data - bars.data.mean(axis=0)) ** 2).sum() / error)
    assert dict(contents["facts"])["signal-to-noise ratio"] == f"{ratio:.1f} dB".replace("-", "−")


def test_a_component_can_be_enlarged_with_the_keyboard_and_closed(written, page_of):
    page = page_of(written)
    page.get_by_role("button", name=re.compile("^Enlarge component")).focus()
    page.keyboard.press("Enter")
    large = page.locator("#zoom-picture canvas")
    assert large.bounding_box()["width"] > 400
    page.keyboard.press("Escape")
    assert not large.is_visible()
    assert page.problems == []


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """axe-core, which finds what keeps people with a keyboard or a screen reader out."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed, from which axe-core comes")
    folder = tmp_path_factory.mktemp("npm")
    words = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "axe-core@4"]
    try:
        subprocess.run(words, check=True, capture_output=True, timeout=60)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired, OSError) as error:
        pytest.skip(f"npm could not install axe-core: {error}")
    return folder / "node_modules" / "axe-core" / "axe.min.js"


def violations(browser, axe, path, scheme):
    """What axe-core finds in a page. The page allows no other script, so that its policy is switched off for this."""
    page = browser.new_context(bypass_csp=True, color_scheme=scheme).new_page()
    page.goto(path.as_uri())
    for summary in page.query_selector_all("summary"):
        summary.click()
    page.add_script_tag(path=axe)
    return page.evaluate("async () => (await axe.run(document)).violations.map((v) => [v.id, v.nodes[0].html])")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(written, browser, axe, scheme):
    assert violations(browser, axe, written, scheme) == []


def test_the_comparison_of_runs_is_accessible_and_matches_components(browser, axe, tmp_path):
    random = np.random.RandomState(0)
    components = random.normal(size=(4, 9))
    runs = [
        ComparedRun("one", components, (3, 3), "images", {"R²": "0.5"}),
        ComparedRun("two", -2 * components[[2, 0, 3, 1]], (3, 3), "images", {"R²": "0.6"}),
        ComparedRun("flat", random.uniform(size=(3, 9)), None, "table", {"R²": "0.7"}),
        ComparedRun("other", np.ones((2, 5)), None, "table", {}),
    ]
    means = write_runs_comparison(tmp_path / "runs.html", runs, same_data=True)
    assert means[0] == pytest.approx(1)
    assert means[1] < 1
    assert means[2] is None
    assert violations(browser, axe, tmp_path / "runs.html", "light") == []


def test_components_are_matched_with_the_largest_sum_of_cosines():
    """Compared with all permutations."""
    random = np.random.RandomState(1)
    first, second = random.normal(size=(4, 6)), random.normal(size=(5, 6))
    match = matched_components(first, second)
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (first, second)]
    cosines = np.abs(unit[0] @ unit[1].T)
    best = max(sum(cosines[h, order[h]] for h in range(4)) for order in permutations(range(5)))
    assert match.similarity.sum() == pytest.approx(best)
    assert (np.diff(match.similarity) <= 0).all()
    np.testing.assert_allclose(cosines[match.first, match.second], match.similarity)
