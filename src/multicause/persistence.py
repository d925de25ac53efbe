"""Saving and loading: one file with arrays and settings, without pickle, that is whole or refused.

A file is the line ``multicause model 1``, the SHA-256 of the rest, and the rest: NumPy's ``.npz`` with the learned
arrays and one JSON text with the settings.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import json
from collections.abc import Sequence
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from multicause import __version__
from multicause.parts import Part
from multicause.writing import write_whole

if TYPE_CHECKING:
    from multicause.shell import Shell

MAGIC = b"multicause model 1\n"
DIGEST_LENGTH = 64
# Attributes of a fitted model that are saved as they are, where they exist.
HISTORY = (
    "lower_bound_",
    "lower_bounds_",
    "temperatures_",
    "n_iter_",
    "converged_",
    "outcome_",
    "annealing_",
    "evidence_threshold_",
    "n_features_in_",
    "feature_names_in_",
)


def save(model: Shell, path: str | PathLike[str]) -> None:
    """Write a fitted model. The file appears whole or not at all; one of that name is replaced."""
    arrays: dict[str, np.ndarray] = {}
    history = [name for name in (*HISTORY, *model._results) if hasattr(model, name)]
    header = {
        "version": __version__,
        "estimator": f"{type(model).__module__}:{type(model).__qualname__}",
        "settings": {k: _encode(v, arrays, f"settings/{k}") for k, v in _settings(model).items()},
        "history": {k: _encode(getattr(model, k), arrays, f"history/{k}") for k in history},
        "state": _encode(model._state(), arrays, "state"),
    }
    payload = io.BytesIO()
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez_compressed(payload, allow_pickle=False, **arrays)
    body = payload.getvalue()
    write_whole(Path(path), MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def load(path: str | PathLike[str], *, parts: Sequence[type] = ()) -> Any:
    """Read a model that :meth:`save` wrote, ready to transform, sample and score.

    Parameters
    ----------
    path : path-like
        The file.
    parts : sequence of classes, optional
        Classes of your own that the model uses, parts or the estimator itself. The library's own are known; no other
        code is imported.
    """
    content = Path(path).read_bytes()
    digest, body = content[len(MAGIC) :][: DIGEST_LENGTH + 1], content[len(MAGIC) + DIGEST_LENGTH + 1 :]
    if not content.startswith(MAGIC):
        raise ValueError(f"{path} is not a model saved by this version of multicause; expected a file made by save().")
    if hashlib.sha256(body).hexdigest().encode() + b"\n" != digest:
        raise ValueError(f"{path} is damaged: its contents do not match its checksum. Restore it, or save it again.")
    with np.load(io.BytesIO(body), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    header = json.loads(arrays.pop("header").tobytes())
    known = {f"{part.__module__}:{part.__qualname__}": part for part in parts}

    model = _known_class(header["estimator"], known, BaseEstimator)(
        **{k: _decode(v, arrays, known) for k, v in header["settings"].items()}
    )
    for name, value in header["history"].items():
        setattr(model, name, _decode(value, arrays, known))
    model._restore(_decode(header["state"], arrays, known))
    return model


def _settings(model: Shell) -> dict[str, Any]:
    """Constructor arguments; a random generator cannot be saved and is not needed by a fitted model."""
    settings = model.get_params(deep=False)
    if isinstance(settings.get("random_state"), np.random.RandomState):
        settings["random_state"] = None
    return settings


def _encode(value: Any, arrays: dict[str, np.ndarray], name: str) -> Any:
    """JSON for a value; arrays in it go to ``arrays`` and are named in the JSON."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and not isinstance(value, np.floating):
        return float(value)
    if isinstance(value, Part):
        settings = {k: _encode(v, arrays, f"{name}/{k}") for k, v in value.get_params(deep=False).items()}
        return {"part": f"{type(value).__module__}:{type(value).__qualname__}", "settings": settings}
    if isinstance(value, dict):
        return {"dict": {k: _encode(v, arrays, f"{name}/{k}") for k, v in value.items()}}
    if isinstance(value, tuple | list | frozenset):
        items = sorted(value) if isinstance(value, frozenset) else value
        return {"tuple": [_encode(v, arrays, f"{name}/{i}") for i, v in enumerate(items)]}
    array = np.asarray(value)
    if array.dtype == object and all(isinstance(item, str) for item in array.flat):
        return {"names": list(array)}
    if array.dtype == object:
        raise TypeError(f"{name} cannot be saved: {value!r} is neither a number, text, array nor part.")
    arrays[name] = array
    return {"array": name}


def _decode(value: Any, arrays: dict[str, np.ndarray], known: dict[str, type]) -> Any:
    if not isinstance(value, dict):
        return value
    if "part" in value:
        settings = {k: _decode(v, arrays, known) for k, v in value["settings"].items()}
        return _known_class(value["part"], known, Part)(**settings)
    if "dict" in value:
        return {k: _decode(v, arrays, known) for k, v in value["dict"].items()}
    if "tuple" in value:
        return tuple(_decode(v, arrays, known) for v in value["tuple"])
    if "names" in value:
        return np.array(value["names"], dtype=object)
    array = arrays[value["array"]]
    return array[()] if array.ndim == 0 else array


def _known_class(name: str, known: dict[str, type], base: type) -> type[Any]:
    """One of the caller's classes or of this package's: a file cannot make us import anything else."""
    if name in known:
        return known[name]
    module, _, qualname = name.partition(":")
    found = getattr(importlib.import_module(module), qualname, None) if module.startswith("multicause.") else None
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ValueError(
            f"The model uses {qualname!r} of {module!r}, which is not a part of multicause. If the class is yours and "
            f"you trust the file, pass it: load(path, parts=[{qualname}])."
        )
    return found
