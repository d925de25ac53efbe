"""Import of optional packages, most of which extras of this library install."""

from importlib import import_module
from typing import Any


def need(package: str, purpose: str, extra: str = "", *, name: str = "", instead: str = "") -> Any:
    """Return a package, or raise an ImportError that says how to install it.

    ``extra`` is the extra of this library which installs it, if there is one; ``name`` is the name of the package where
    it differs from that of its module, and ``instead`` what the user may do without it.
    """
    try:
        return import_module(package)
    except ImportError as error:
        how = f"'multicause[{extra}]'" if extra else name or package
        otherwise = f", or {instead}" if instead else ""
        raise ImportError(
            f"{name or package} is needed for {purpose} and is not installed. Install it with pip install "
            f"{how}{otherwise}."
        ) from error
