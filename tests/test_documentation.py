"""Every example in README and docs runs, and quoted source is the real one."""

import doctest
import re
import shlex
import textwrap
from pathlib import Path

import pytest

import multicause.models.energy_components
import multicause.models.factor_analysis
import multicause.models.helmholtz_machine
import multicause.models.independent_components
import multicause.models.k_means
import multicause.models.linear_causes
import multicause.models.maximal_causes
import multicause.models.mixture_of_gaussians
import multicause.models.mixture_of_poissons
import multicause.models.nonnegative_causes
import multicause.models.principal_components
import multicause.models.restricted_maximal_causes
import multicause.models.softmax_network
import multicause.models.sparse_coding
import multicause.models.spike_and_slab_causes
import multicause.plotting.components
import multicause.plotting.convergence
import multicause.plotting.posterior
import multicause.plotting.recovery
import multicause.preprocessing
import multicause.restoration.noise_level
import multicause.selection.curve
import multicause.selection.surplus

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
# Programs of other pages run for a shorter time than it takes to compile them well, and are shared by pages.
LONG = ("patches.md", "restoration.md")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    """Pictures are written there, and windows are not opened."""
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    yield
    pyplot.close("all")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_run(page, capsys, request):
    """Blocks of one page share their names, as a reader would type them one after the other.

    Where a comment says what is printed (``# → 10``), that is printed.
    """
    if page.name in LONG:
        request.getfixturevalue("optimized")
    names, printed = {}, []
    for block in re.findall(
        r"```python\n(.*?)```", re.sub(r"<!-- source.*?end of source -->", "", page.read_text(), flags=re.S), re.S
    ):
        exec(compile(block, str(page), "exec"), names)
        shown = capsys.readouterr().out.splitlines()
        if expected := re.findall(r"# → (.*)$", block, re.M):
            assert shown == expected
            printed += shown
    assert printed or "tutorials" not in page.parts


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_quoted_source_is_the_real_one(page):
    for path, quoted in re.findall(r"<!-- source: (\S+) -->\n```python\n(.*?)```", page.read_text(), re.S):
        assert quoted == (ROOT / path).read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_excerpts_of_source_are_real_ones(page):
    """Methods are quoted without the indentation that they have inside their class."""
    for path, quoted in re.findall(r"<!-- excerpt: (\S+) -->\n```text\n(.*?)```", page.read_text(), re.S):
        assert textwrap.indent(quoted, "    ") in (ROOT / path).read_text()


@pytest.mark.parametrize("page", [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", [page for page in PAGES if "developers" not in page.parts], ids=lambda page: page.stem)
def test_code_fits_into_the_column_of_a_page(page):
    """Pages for developers quote source, whose lines may be longer."""
    blocks = re.findall(r"```.*?\n(.*?)```", page.read_text(), re.S)
    assert [line for block in blocks for line in block.splitlines() if len(line) > 88] == []


def test_commands_on_the_pages_are_known():
    """Every command that a page shows can be parsed: its name, its options and their values."""
    from typer.main import get_command

    from multicause.app.cli.commands import app

    commands, shown = get_command(app).commands, 0
    for page in PAGES:
        for block in re.findall(r"```bash\n(.*?)```", page.read_text(), re.S):
            for line in re.findall(r"^multicause (.*)$", block, re.M):
                name, *words = shlex.split(line, comments=True)
                commands[name].make_context(name, words)
                shown += 1
    assert shown > 5


MODELS = [
    multicause.models.maximal_causes,
    multicause.models.restricted_maximal_causes,
    multicause.models.softmax_network,
    multicause.models.linear_causes,
    multicause.models.nonnegative_causes,
    multicause.models.energy_components,
    multicause.models.mixture_of_gaussians,
    multicause.models.mixture_of_poissons,
    multicause.models.k_means,
    multicause.models.factor_analysis,
    multicause.models.principal_components,
    multicause.models.sparse_coding,
    multicause.models.spike_and_slab_causes,
    multicause.models.independent_components,
    multicause.models.helmholtz_machine,
    multicause.plotting.components,
    multicause.plotting.convergence,
    multicause.plotting.posterior,
    multicause.plotting.recovery,
    multicause.preprocessing,
    multicause.restoration.noise_level,
    multicause.selection.curve,
    multicause.selection.surplus,
]


@pytest.mark.parametrize("module", MODELS)
def test_docstrings(module):
    results = doctest.testmod(module)
    assert results.failed == 0
    assert results.attempted > 0


def test_the_table_of_models_is_made_from_their_classes():
    from multicause.estimators.summary import summary_table

    names = (
        *("MixtureOfGaussians", "MixtureOfPoissons", "KMeans", "FactorAnalysis"),
        *("PrincipalComponents", "SparseCoding", "IndependentComponents", "HelmholtzMachine"),
    )
    table = summary_table(getattr(multicause, name) for name in names)
    assert table in (ROOT / "docs/background/classical_family.md").read_text()


def test_the_costs_of_a_cluster_are_computed():
    from benchmarks.cluster_costs import table

    assert table() in (ROOT / "docs/how_to/cluster.md").read_text()


def test_the_reference_has_every_estimator():
    import multicause

    described = re.findall(r"multicause\.(\w+)$", (ROOT / "docs/reference/estimators.md").read_text(), re.M)
    assert sorted(described) == sorted(multicause.__all__)
