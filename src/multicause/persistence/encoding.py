"""Encoding of numbers, strings, arrays, parts and records as JSON and arrays, and decoding.

A value that JSON cannot represent is a dictionary with one key that names its type. Decoding calls only constructors of
parts, estimators and records of this package, and of classes that the caller passes.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from numbers import Integral, Real
from types import FunctionType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from multicause.outcomes import Outcome
from multicause.parts import Part
from multicause.persistence.container import ModelFileError

#: Modules and folders whose classes a file may name. Importing other modules could have side effects.
HOMES = (
    "annealing",
    "combinations",
    "em",
    "energies",
    "engines",
    "estimators",
    "model",
    "models",
    "noises",
    "persistence",
    "posteriors",
    "preparation",
    "priors",
    "records",
    "samplers",
    "search",
    "solvers",
    "updates",
)
#: Classes that older files name by a module that has moved, or by another name.
FORMER_NAMES = {
    "multicause.models.mixtures:MixtureOfGaussians": "multicause.models.mixture_of_gaussians:MixtureOfGaussians",
    "multicause.models.mixtures:MixtureOfPoissons": "multicause.models.mixture_of_poissons:MixtureOfPoissons",
    "multicause.learning.annealing:ConditionalCooling": "multicause.annealing.conditional:ConditionalCooling",
    "multicause.learning.annealing:LinearCooling": "multicause.annealing.linear:LinearCooling",
    "multicause.learning.annealing:NoAnnealing": "multicause.annealing.linear:NoAnnealing",
    "multicause.learning.contrastive_divergence:Course": "multicause.solvers.energy_problem:FormerUpdateState",
    "multicause.em.results:Phase": "multicause.em.results:BoundChange",
    "multicause.learning.results:Phase": "multicause.em.results:BoundChange",
    "multicause.model:Parameters": "multicause.records:Parameters",
    "multicause.samplers.closed_form:Exact": "multicause.samplers.closed_form:ExactGradient",
    "multicause.persistence.journal:Record": "multicause.persistence.journal:LoopRecord",
    "multicause.search.automatic:Search": "multicause.search.phases:Search",
}
FORMER_FOLDERS = {
    "multicause.learning.updates.": "multicause.updates.",
    "multicause.learning.results": "multicause.em.results",
    "multicause.learning.whitening": "multicause.preparation.whitening",
    "multicause.posteriors.selection": "multicause.posteriors.candidate_selection",
}

#: Fields of records that older files name differently.
FORMER_FIELDS = {
    "multicause.persistence.checkpoints:Resumption": {"watched": "history"},
    "multicause.search.phases:Search": {"restarted": "from_rows"},
    "multicause.solvers.joint_learning:GradientState": {"moments": "optimizer_state"},
    "multicause.solvers.wake_sleep:WakeSleepState": {"moments": "optimizer_state"},
}


def name_of(kind: type | Callable[..., Any]) -> str:
    """Return the name of a class or a function in files."""
    return f"{kind.__module__}:{kind.__qualname__}"


def settings_to_save(value: BaseEstimator) -> dict[str, Any]:
    """Return the settings of a part or an estimator in a form that a file can hold."""
    return value.settings_to_save() if isinstance(value, Part) else value.get_params(deep=False)


def encode(value: Any, arrays: dict[str, np.ndarray], name: str) -> Any:
    """Encode a value as JSON; arrays in it are added to ``arrays`` and named in the JSON."""
    if isinstance(value, Outcome):
        return {"outcome": value.value}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral) and not isinstance(value, np.integer):
        return int(value)
    if isinstance(value, Real) and not isinstance(value, np.floating | np.integer):
        return float(value)
    if isinstance(value, FunctionType):
        return {"function": _function_name(value, name)}
    if isinstance(value, BaseEstimator):
        settings = {k: encode(v, arrays, f"{name}/{k}") for k, v in settings_to_save(value).items()}
        return {"part": name_of(type(value)), "settings": settings}
    if isinstance(value, dict):
        return {"dict": {k: encode(v, arrays, f"{name}/{k}") for k, v in value.items()}}
    if _is_record(type(value)):
        fields = {k: encode(getattr(value, k), arrays, f"{name}/{k}") for k in _fields(type(value))}
        return {"record": name_of(type(value)), "fields": fields}
    if isinstance(value, tuple | list | frozenset):
        items = sorted(value) if isinstance(value, frozenset) else value
        return {"tuple": [encode(v, arrays, f"{name}/{i}") for i, v in enumerate(items)]}
    array = np.asarray(value)
    if array.dtype.kind in "OU" and all(isinstance(item, str) for item in array.flat):
        return {"names": [str(item) for item in array]}
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} cannot be saved: {value!r} is neither a number, text, array nor part.")
    arrays[name] = array
    return {"array": name}


def decode(value: Any, arrays: dict[str, np.ndarray], known: dict[str, Any]) -> Any:
    """Decode an encoded value; ``known`` maps names to the caller's own classes and functions."""

    def decoded(values: dict[str, Any]) -> dict[str, Any]:
        return {k: decode(v, arrays, known) for k, v in values.items()}

    match value:
        case None | bool() | str() | int() | float():
            return value
        case {"outcome": text}:
            return Outcome(text)
        case {"part": name, "settings": dict(settings)}:
            return known_class(name, known)(**decoded(settings))
        case {"function": str(name)}:
            return _known_function(name, known)
        case {"dict": dict(items)}:
            return decoded(items)
        case {"record": name, "fields": dict(fields)}:
            kind = _record(name)
            former = FORMER_FIELDS.get(name_of(kind), {})
            return kind(**{former.get(k, k): v for k, v in decoded(fields).items()})
        case {"tuple": list(items)}:
            return tuple(decode(item, arrays, known) for item in items)
        case {"names": list(names)}:
            return np.array([str(name) for name in names], dtype=object)
        case {"array": name}:
            array = arrays[name]
            return array[()] if array.ndim == 0 else array
    raise ModelFileError(f"{str(value)[:60]} in the header is not a value that multicause writes")


def known_class(name: str, known: dict[str, Any]) -> type[Any]:
    """Return a class of the caller or of this package by name; nothing else is ever imported from a file."""
    if isinstance(known.get(name), type):
        return known[name]
    kind = _our_own(name)
    if kind is None or not issubclass(kind, BaseEstimator):
        module, _, qualname = str(name).partition(":")
        raise ModelFileError(
            f"The model uses {qualname!r} of {module!r}, which is not a part of multicause. If the class is yours and "
            f"you trust the file, pass it: load(path, parts=[{qualname}])."
        )
    return kind


def _function_name(function: Any, what: str) -> str:
    """Return the name of a function, by which a file refers to it; raise TypeError if it has none."""
    if "<lambda>" in function.__qualname__:
        raise TypeError(
            f"{what} cannot be saved: a file refers to a function by its name, and a lambda has none. Define it with "
            "def, and pass it when the file is read: load(path, parts=[function])."
        )
    return name_of(function)


def _known_function(name: str, known: dict[str, Any]) -> Any:
    """Return a function of the caller by its name; none is ever imported."""
    if not isinstance(known.get(name), FunctionType):
        module, _, qualname = name.partition(":")
        raise ModelFileError(
            f"The model uses the function {qualname!r} of {module!r}, which a file cannot hold. Pass it: "
            f"load(path, parts=[{qualname}])."
        )
    return known[name]


def _record(name: str) -> type[Any]:
    """Return the record class with this name."""
    kind = _our_own(name)
    if kind is None or not _is_record(kind):
        raise ModelFileError(f"{name!r} is not a record of multicause.")
    return kind


def _our_own(name: Any) -> type | None:
    """Return the class of this package with this name, or None if there is none in the permitted modules."""
    name = FORMER_NAMES.get(str(name), str(name))
    for former, now in FORMER_FOLDERS.items():
        name = now + name.removeprefix(former) if name.startswith(former) else name
    module, _, qualname = name.partition(":")
    package, _, rest = module.partition(".")
    words = rest.split(".")
    if package != "multicause" or words[0] not in HOMES or not all(word.isidentifier() for word in words):
        return None
    try:
        named = getattr(importlib.import_module(module), qualname, None)
    except ModuleNotFoundError:
        return None
    return named if isinstance(named, type) and named.__module__ == module else None


def _is_record(kind: type) -> bool:
    """Return whether a class is a named tuple or a dataclass of this package."""
    named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return (named or dataclasses.is_dataclass(kind)) and kind.__module__.startswith("multicause.")


def _fields(kind: Any) -> tuple[str, ...]:
    """Return the field names of a record class."""
    return kind._fields if hasattr(kind, "_fields") else tuple(field.name for field in dataclasses.fields(kind))
