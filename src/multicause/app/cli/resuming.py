"""Check of options given together with ``--resume``: they must be those of the resumed run."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from multicause.app.cli.unfinished import Request

#: Options that are settings of the model.
PARAMETERS = {
    "components": "n_components",
    "noise": "noise",
    "posterior": "posterior",
    "iterations": "max_iter",
    "starts": "n_init",
    "seed": "random_state",
}
SHAPES = ("patches", "image_shape")
NAMES = {"data": "DATA", "settings": "--set"}


def check_same(given: Collection[str], asked: Request, recorded: Request) -> None:
    """Raise ValueError if given options differ from those of the recorded run."""
    ours, theirs = _options(asked), _options(recorded)
    for name in given:
        if name in ours and ours[name] != theirs.get(name):
            option = NAMES.get(name, "--" + name.replace("_", "-"))
            raise ValueError(
                f"{option} is {_text(name, ours)}, but the resumed run has {_text(name, theirs)}. A resumed run uses "
                f"the data and settings that it began with: leave {option} out, or start a new run."
            )


def _options(request: Request) -> dict[str, Any]:
    plain = json.loads(json.dumps(asdict(request)))
    return {
        **plain["reading"],
        **plain["preparation"],
        **{option: plain["parameters"].get(name) for option, name in PARAMETERS.items()},
        "data": plain["paths"],
        "model": plain["name"],
        "settings": plain["extra"],
        "memory": plain["memory"],
    }


def _text(name: str, options: dict[str, Any]) -> str:
    value = options.get(name)
    if value is None:
        return "the default"
    if isinstance(value, list):
        return ("x" if name in SHAPES else " ").join(map(str, value)) or "none"
    return str(value)
