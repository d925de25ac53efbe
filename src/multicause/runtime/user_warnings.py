"""Warnings that point at the line of the user's code that called the package."""

import sys
import warnings

#: Modules whose frames lie between the user's call and a warning: this package, and those that call its functions.
INTERNAL = ("multicause", "sklearn", "joblib", "contextlib", "functools")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning with the message, unless it is empty, for the line that called the package."""
    if message:
        warnings.warn(message, category, stacklevel=_level_of_user())


def _level_of_user() -> int:
    """Return the stack level of the innermost frame outside of ``INTERNAL``, as seen from the caller."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INTERNAL:
        frame, level = frame.f_back, level + 1
    return level
