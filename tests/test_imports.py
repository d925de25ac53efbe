"""Which folder of the package may import which: layers, of which each knows only those below it.

Imports inside functions and for types alone (``if TYPE_CHECKING``) count like all others.
"""

import ast
from pathlib import Path

import pytest

import multicause

SOURCE = Path(multicause.__file__).parent
#: From the bottom up. A folder or module imports only what stands above it in this list.
LAYERS = (
    "version",
    "arrays",
    "outcomes",
    "compatibility",
    "runtime",
    "parts",
    "states",
    "records",
    "expectations",
    "annealing",
    "energies",
    "samplers",
    "priors",
    "noises",
    "combinations",
    "generative",
    "posteriors",
    "updates",
    "model",
    "wiring",
    "engines",
    "persistence",
    "inference",
    "initialization",
    "em",
    "search",
    "preparation",
    "solvers",
    "callbacks",
    "estimators",
    "models",
    "preprocessing",
    "selection",
    "datasets",
    "metrics",
    "restoration",
    "plotting",
    "app",
    "__main__",
)


def module_name(path):
    words = ("multicause", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(words[:-1] if words[-1] == "__init__" else words)


MODULES = {module_name(path): path for path in SOURCE.rglob("*.py")}


def modules_imported_by(path):
    """Yield the modules of the package that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from {name if name in MODULES else node.module for name in names} & MODULES.keys()
        elif isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & MODULES.keys()


def layer_of(module):
    """The folder or module of the package that a name such as ``multicause.em.step`` belongs to."""
    words = module.split(".")
    return words[1] if len(words) > 1 and words[1] in LAYERS else None


def test_every_module_has_a_layer():
    found = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert found - {"__init__"} == set(LAYERS)


@pytest.mark.parametrize("layer", LAYERS)
def test_modules_import_lower_layers_alone(layer):
    paths = sorted((SOURCE / layer).rglob("*.py")) if (SOURCE / layer).is_dir() else [SOURCE / f"{layer}.py"]
    assert paths
    for path in paths:
        for module in modules_imported_by(path):
            other = layer_of(module)
            if other not in (None, layer):
                lower = LAYERS.index(other) < LAYERS.index(layer)
                assert lower, f"{path.relative_to(SOURCE)} must not import {module}"


def test_no_modules_import_each_other():
    """A package is its ``__init__.py``."""
    # Modules that import no other module of a cycle are not part of one.
    remaining = {name: set(modules_imported_by(path)) - {name} for name, path in MODULES.items()}
    while done := [name for name, others in remaining.items() if not others & remaining.keys()]:
        for name in done:
            del remaining[name]
    assert sorted(remaining) == []


def test_one_file_imports_private_names_of_scikit_learn():
    """They may change with any release, so that one file has to follow."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "sklearn":
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [
                    word for alias in node.names if alias.name.startswith("sklearn") for word in alias.name.split(".")
                ]
            else:
                continue
            if any(name.startswith("_") for name in names):
                found.add(str(path.relative_to(SOURCE)))
    assert found == {"runtime/scikit_learn.py"}


def test_one_file_uses_private_attributes_of_scikit_learn():
    """Apart from ``_parameter_constraints``, by which estimators declare constraints of their settings."""
    private = (
        "_skl_callbacks",
        "_callback_fit_ctx",
        "_parent_callback_ctx",
        "_init_callback_context",
        "_validate_params",
        "_get_param_names",
    )
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if any(name in path.read_text() for name in private)
    }
    assert found == {"runtime/scikit_learn.py"}


def test_relative_imports_are_not_used():
    """They would escape the check above."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.ImportFrom) and node.level), path
