"""Models by the names that the command line has for them, made from its options."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any

from multicause.cli.words import OPTIONS

MODELS = {
    "maximal": "MaximalCauses",
    "linear": "LinearCauses",
    "nonnegative": "NonnegativeCauses",
    "restricted": "RestrictedMaximalCauses",
    "network": "SoftmaxNetwork",
    "mixture": "MixtureOfGaussians",
    "counts": "MixtureOfPoissons",
    "kmeans": "KMeans",
    "factors": "FactorAnalysis",
    "pca": "PrincipalComponents",
    "sparse": "SparseCoding",
    "ica": "IndependentComponents",
    "helmholtz": "HelmholtzMachine",
    "energy": "EnergyComponents",
}


def make_model(name: str, settings: dict[str, Any], extra: Sequence[str] = ()) -> Any:
    """An estimator from the options that were given; those that are None keep the model's default.

    ``extra`` has texts such as ``tol=1e-4`` or ``posterior__max_active=4`` for settings that have no option.
    """
    import multicause

    if name not in MODELS:
        raise ValueError(f"Unknown model {name!r}. Known: {', '.join(MODELS)}.")
    estimator = getattr(multicause, MODELS[name])
    known = [parameter for parameter in inspect.signature(estimator).parameters if parameter != "self"]
    given = {key: value for key, value in settings.items() if value is not None}
    nested: dict[str, dict[str, Any]] = {}
    for text in extra:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ValueError(f"--set needs a name and a value, such as tol=1e-4; got {text!r}.")
        part, double, own = key.partition("__")
        if double:
            nested.setdefault(part, {})[own] = _value(value)
        else:
            given[key] = _value(value)
    for key in (*given, *nested):
        if key not in known:
            options = [OPTIONS[word] for word in known if word in OPTIONS]
            others = [word for word in known if word not in (*OPTIONS, "engine")]
            raise ValueError(
                f"The model {name!r} has no {OPTIONS.get(key, key)}; its settings are {', '.join(options)}, and with "
                f"--set {', '.join(others)}."
            )
    for role, own_settings in nested.items():
        given[role] = _part(role, given.get(role), own_settings)
    return estimator(**given)


def _part(role: str, name: Any, settings: dict[str, Any]) -> Any:
    """A part with settings of its own, by its name."""
    from multicause import noises, posteriors, priors, samplers

    known = {"posterior": posteriors, "noise": noises, "prior": priors, "sampler": samplers}
    if role not in known:
        raise ValueError(f"--set can reach into {', '.join(known)}; not into {role!r}.")
    names = known[role].NAMES
    if name not in names:
        raise ValueError(f"Name the {role} to set something of it: {role}={'|'.join(names)}; got {name!r}.")
    part = names[name]()
    unknown = [key for key in settings if key not in part.get_params()]
    if unknown:
        raise ValueError(f"{name!r} has no {unknown[0]!r}; its settings are {', '.join(part.get_params())}.")
    return part.set_params(**settings)


def _value(text: str) -> Any:
    """A number, true, false, null or a list as JSON has them; all else is text."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return tuple(value) if isinstance(value, list) else value
