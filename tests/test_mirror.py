"""Tests mirror the package: every folder has tests, and every module is tested directly or listed with a reason."""

import ast
from pathlib import Path

import pytest

import multicause

SOURCE, TESTS = Path(multicause.__file__).parent, Path(__file__).parent
#: Modules of each folder of which no test imports a name, and how tests reach them. A new module has a test of its own;
#: an entry leaves this list as soon as a test imports the module.
REACHED_INDIRECTLY = {
    "as an interface, whose subclasses are tested": {
        "annealing": "base",
        "engines": "base source",
        "posteriors": "base",
        "priors": "base",
        "updates": "base",
    },
    "by the command line, in tests/app/cli/": {
        "app/cli": "fitting resuming",
        "app/report": "media reproduction",
        "runtime": "devices",
    },
    "by the names of experiments; most take minutes, and 'multicause reproduce' compares their numbers with papers": {
        "app/experiments": "bars_reference ebm01_data ebm01_separation et10_data known_states mca_exact "
        "peers_parts tn10_images tn10_models",
    },
    "by reading files of each kind, in tests/datasets/ and tests/app/cli/": {
        "datasets": "checks columns files large_tables numerals pictures recordings spectrograms "
        "synthetic_speech text_format text_tables",
        "runtime": "paths",
    },
    "by comparing engines with each other, in tests/engines/": {
        "em": "kept_states",
        "engines": "blockwise dask_tasks file_sources fingerprints missing overview parquet_source",
        "persistence": "row_writing",
    },
    "by fits of models, in tests/estimators/, tests/models/ and tests/laws/": {
        "annealing": "choice",
        "arrays": "programs random_numbers",
        "estimators": "advice arguments binary_causes columns energy energy_density energy_fitting fields "
        "fitted_gradient_causes fitted_state gaussian_factors hebbian joint_inference "
        "mixture network_causes restricted_causes row_results",
        "initialization": "filters means networks rotations",
        "preparation": "whitening",
        "runtime": "scikit_learn",
    },
    "by comparing parts with oracles, in tests/laws/ and tests/posteriors/": {
        "combinations": "credit",
        "em": "data_cut",
        "noises": "binary incomplete_clusters offset",
        "posteriors": "incomplete_gaussian log_joint_search state_search",
        "posteriors/beams": "log_joint_beam spikes",
        "posteriors/candidates": "candidate_levels candidate_pairs candidate_scores candidate_states candidate_weights "
        "features preselected_levels",
        "posteriors/evolution": "few_flips flip_search flip_states flips greedy_breeding row_draws",
        "posteriors/expectations": "masked_sums observed row_totals row_weights shared_states truncated_states",
        "updates": "normalized",
    },
    "by scores of numbers of components, in tests/selection/": {"selection": "differences"},
    "by displays, in tests/plotting/": {"plotting": "fields validation"},
    "by restored images, in tests/restoration/": {"restoration": "learning pictures"},
}


def test_tests_have_the_folders_of_the_package():
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    strays = {str(folder) for folder in folders if not (SOURCE / folder / "__init__.py").exists()}
    assert strays == {"laws"}, "Tests of src/multicause/em/ belong in tests/em/."
    tested = {folder.parts[0] for folder in folders if folder.parts}
    untested = {path.parent.name for path in SOURCE.glob("*/__init__.py")} - tested
    assert not untested, "Every folder of the package has tests in a folder of the same name."


def defined_in(path):
    """The names that a module defines at its top level."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def imported_by_tests():
    """Pairs of a module or package, and a name that some test imports from it."""
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "multicause":
                yield from ((node.module, alias.name) for alias in node.names)


def test_every_module_is_tested_directly_or_listed_with_a_reason():
    """A module has a test file of its name, or a test imports it, or a name that it defines, from it or its package."""
    imported = set(imported_by_tests())
    untested = set()
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE).with_suffix("")
        if path.stem in ("__init__", "__main__") or (TESTS / place.parent / f"test_{place.name}.py").exists():
            continue
        *packages, module = [".".join(("multicause", *place.parts[:n])) for n in range(len(place.parts) + 1)]
        direct = any(origin == module for origin, _ in imported) or (packages[-1], place.name) in imported
        if not direct and not any((package, name) in imported for package in packages for name in defined_in(path)):
            untested.add(place.as_posix())
    listed = {
        f"{folder}/{module}"
        for folders in REACHED_INDIRECTLY.values()
        for folder, modules in folders.items()
        for module in modules.split()
    }
    assert untested - listed == set(), "Add a test file for these modules, in the folder of the same name in tests/."
    assert listed - untested == set(), "Remove these modules from the list: they are tested, or no longer exist."


@pytest.mark.parametrize(("folder", "most"), [("models", 150), ("estimators", 250), ("", 400)])
def test_files_have_one_idea(folder, most):
    """A model file is reference, equations, constructor and declaration, without a training loop."""
    sizes = {path.name: len(path.read_text().splitlines()) for path in (SOURCE / folder).rglob("*.py")}
    assert {name: size for name, size in sizes.items() if size > most} == {}
