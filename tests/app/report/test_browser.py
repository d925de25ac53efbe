"""Pages in a real browser: what clicks and keys do, layout, downloads and accessibility."""

import os
import re
import shutil
import subprocess

import numpy as np
import pandas
import pytest

import multicause
from multicause.app.report import write_report
from multicause.app.report.runs import ComparedRun, write_runs_comparison
from tests.app.report.conftest import decoded

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


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
