"""Import of optional packages that extras of this library install."""

from importlib import import_module
from typing import Any


def need(package: str, purpose: str, extra: str) -> Any:
    """Return a package, or raise an ImportError that names the extra which installs it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(
            f"{package} is needed for {purpose} and is not installed. Install it with pip install "
            f"'multicause[{extra}]'."
        ) from error
