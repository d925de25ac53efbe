"""Models by their names on the command line, created from its options."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any

from multicause.app.cli.message_translation import OPTIONS

#: Name of the choice by the kind of data (choosing.py).
AUTO = "auto"
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
    "slabs": "SpikeAndSlabCauses",
    "ica": "IndependentComponents",
    "helmholtz": "HelmholtzMachine",
    "noisy-or": "NoisyOrCauses",
    "autoencoder": "TruncatedAutoencoder",
    "energy": "EnergyComponents",
}


def make_model(name: str, settings: dict[str, Any], extra: Sequence[str] = ()) -> Any:
    """Create an estimator from the given options; those that are None keep the model's default.

    ``extra`` holds strings such as ``tol=1e-4`` or ``posterior__max_active=4`` for settings without an option.
    """
    import multicause

    if name not in MODELS:
        raise ValueError(f"Unknown model {name!r}. Known: {AUTO}, {', '.join(MODELS)}.")
    estimator = getattr(multicause, MODELS[name])
    known = [parameter for parameter in inspect.signature(estimator).parameters if parameter != "self"]
    given = {key: value for key, value in settings.items() if value is not None}
    for text in extra:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ValueError(f"--set needs a name and a value, such as tol=1e-4; got {text!r}.")
        given[key] = _value(value)
    for key in given:
        word = key.partition("__")[0]
        if word not in known:
            options = [OPTIONS[own] for own in known if own in OPTIONS]
            others = [own for own in known if own not in (*OPTIONS, "engine")]
            raise ValueError(
                f"The model {name!r} has no {OPTIONS.get(word, word)}; its settings are {', '.join(options)}, and with "
                f"--set {', '.join(others)}."
            )
    nested = {key: value for key, value in given.items() if "__" in key}
    return estimator(**{key: value for key, value in given.items() if "__" not in key}).set_params(**nested)


def _value(text: str) -> Any:
    """Parse a number, true, false, null or a list as JSON; everything else is a string."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return tuple(value) if isinstance(value, list) else value
