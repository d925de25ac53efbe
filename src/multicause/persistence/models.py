"""Model files: the class of a model, its settings, its history and its learned parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Protocol

import numpy as np

from multicause.persistence import container
from multicause.persistence.container import ModelFileError
from multicause.persistence.encoding import decode, encode, known_class, name_of
from multicause.runtime.scikit_learn import validate_settings
from multicause.version import __version__

# Attributes of a fitted model that are saved unchanged, if they exist.
HISTORY = (
    "lower_bound_",
    "lower_bounds_",
    "temperatures_",
    "rows_kept_",
    "bound_changes_",
    "n_iter_",
    "converged_",
    "outcome_",
    "annealing_",
    "evidence_threshold_",
    "n_features_in_",
    "feature_names_in_",
)
# Attributes that older files name differently.
FORMER_ATTRIBUTES = {"phases_": "bound_changes_"}
# Attributes in the history of older files that follow from the state as well.
REPEATED_ATTRIBUTES = ("mean_",)


class Savable(Protocol):
    """Protocol of an estimator that can be saved."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor arguments."""

    def _result_names(self) -> tuple[str, ...]:
        """Return the names of fitted attributes that are saved in addition to those of HISTORY."""

    def _state(self) -> dict[str, Any]:
        """Return the learned state as numbers, strings, arrays, parts and records."""


def save(model: Savable, path: str | PathLike[str], checkpoint: Any = None) -> None:
    """Write a fitted model to a file, optionally with the state of a checkpoint."""
    arrays: dict[str, np.ndarray] = {}
    history = [name for name in (*HISTORY, *model._result_names()) if hasattr(model, name)]
    header = {
        "version": __version__,
        "estimator": name_of(type(model)),
        "settings": encode(settings_of(model), arrays, "settings"),
        "history": encode({k: getattr(model, k) for k in history}, arrays, "history"),
        "state": encode(model._state(), arrays, "state"),
    }
    if checkpoint is not None:
        header["checkpoint"] = encode(checkpoint, arrays, "checkpoint")
    container.write(path, header, arrays)


def load(path: str | PathLike[str], *, parts: Sequence[type | Callable[..., Any]] = ()) -> Any:
    """Read a model that ``save`` wrote, or the best model of a checkpoint, ready to transform, sample and score.

    Parameters
    ----------
    path : path-like
        File to read.
    parts : sequence of classes and functions, optional
        User-defined classes of the model, parts or the estimator itself, and functions such as the log joint of
        :class:`multicause.OwnCauses`. Classes of this library are known; no other code is imported.
    """
    header, arrays = container.read(path)
    known = {name_of(part): part for part in parts}
    try:
        return _restored(header, arrays, known)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error
    except Exception as error:  # any failure on a header with a valid checksum means an invalid file
        raise ModelFileError(
            f"{path} is not a valid model: {container.one_line(error)}. Save the model again."
        ) from error


def _restored(header: dict[str, Any], arrays: dict[str, np.ndarray], known: dict[str, Any]) -> Any:
    """Create the estimator from a decoded header."""
    kind = known_class(header["estimator"], known)
    if not hasattr(kind, "_restore"):
        raise ModelFileError(f"{header['estimator']!r} is not a model.")
    model = kind(**decode(header["settings"], arrays, known))
    validate_settings(model)
    for name, value in decode(header["history"], arrays, known).items():
        name = FORMER_ATTRIBUTES.get(name, name)
        if name in REPEATED_ATTRIBUTES:
            continue
        if name not in (*HISTORY, *model._result_names()):
            raise ModelFileError(f"a model of this class has no attribute {name!r}.")
        setattr(model, name, value)
    model._restore(decode(header["state"], arrays, known))
    components = getattr(model, "components_", None)
    if components is not None and (components.ndim != 2 or components.shape[1] != model.n_features_in_):
        raise ModelFileError(f"components of shape {components.shape} do not fit the model's features.")
    return model


def check_savable(model: Savable) -> None:
    """Raise TypeError for settings that no file can hold, such as functions."""
    encode(settings_of(model), {}, "settings")


def settings_of(model: Savable) -> dict[str, Any]:
    """Return the constructor arguments, without a random generator.

    A generator cannot be saved, and a fitted model does not need it.
    """
    settings = model.get_params(deep=False)
    if isinstance(settings.get("random_state"), np.random.RandomState):
        settings["random_state"] = None
    return settings
