"""Names of scikit-learn that are private there and needed by its extensions; no other file uses private names.

If a new release of scikit-learn moves or changes one of them, this file is the place to follow. The one exception is
the class attribute ``_parameter_constraints``, by which estimators declare constraints of their settings.
"""

from typing import Any

from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions
from sklearn.utils.validation import _check_sample_weight as check_sample_weight

__all__ = [
    "HasMethods",
    "Interval",
    "Options",
    "StrOptions",
    "callback_context",
    "callbacks_of",
    "check_sample_weight",
    "constraints_of_setting",
    "fit_context",
    "parent_context",
    "remove_callbacks",
    "setting_names",
    "validate_settings",
]

# Attributes that scikit-learn sets on an estimator during a fit, and that copies of it do not need.
CALLBACK_ATTRIBUTES = ("_skl_callbacks", "_skl_callbacks_to_teardown", "_callback_fit_ctx", "_parent_callback_ctx")


def validate_settings(estimator: Any) -> None:
    """Raise an error if constructor arguments do not meet the constraints of the class."""
    estimator._validate_params()


def setting_names(kind: Any) -> tuple[str, ...]:
    """Return the names of the constructor arguments of a class of estimators or parts, in alphabetical order."""
    return tuple(kind._get_param_names())


def constraints_of_setting(estimator: Any, name: str) -> list[Any]:
    """Return the constraints of a constructor argument; none if there is no such argument."""
    return estimator._parameter_constraints.get(name, [])


def callbacks_of(estimator: Any) -> list[Any]:
    """Return the callbacks that are set on an estimator."""
    return getattr(estimator, "_skl_callbacks", [])


def remove_callbacks(estimator: Any) -> None:
    """Remove callbacks, and what they store during a fit, from a copy of an estimator."""
    for name in CALLBACK_ATTRIBUTES:
        estimator.__dict__.pop(name, None)


def callback_context(estimator: Any, n_tasks: int) -> Any:
    """Return the context of a fit that has at most ``n_tasks`` tasks, such as iterations, for its callbacks."""
    return estimator._init_callback_context(max_subtasks=n_tasks)


def parent_context(estimator: Any) -> Any:
    """Return the context of the meta-estimator that fits this estimator, or None."""
    return getattr(estimator, "_parent_callback_ctx", None)
