"""Translation of estimators' messages to the command line, where ``max_iter`` is ``--iterations``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

#: Settings of estimators that have an option.
OPTIONS = {
    "n_components": "--components",
    "max_iter": "--iterations",
    "n_init": "--starts",
    "random_state": "--seed",
    "noise": "--noise",
    "posterior": "--posterior",
}
#: Phrases with other names there; attributes of a fitted model are in the files of a run.
PHRASES = {
    r"^outcome_='\w+': ": "",
    r"\b(use|Use) float64 data\b": r"\1 --dtype float64",
    r"\bengine=Local\(memory_budget=\.\.\.\)": "--memory",
    r"\bthe last values of lower_bounds_": "the last bounds in history.csv",
    r"\bacceptance_rates_": "the acceptance in history.csv",
    r" \(activity_ says [^)]*\)": "",
    r"\b(without|[Ll]eave out) resume\b": r"\1 --resume",
    r"(?<![\w/\\.-])X(?![\w/\\-]|\.\w)": "the data",  # but not as a part of a path
}
VALUE = r"'[^']*'|\"[^\"]*\"|\([^)]*\)|[^\s,;:)]*[^\s,;:).]"


def in_options(text: str, settings: dict[str, Any]) -> str:
    """Translate a message of an estimator with these settings for a user of the command line."""
    for pattern, replacement in PHRASES.items():
        text = re.sub(pattern, replacement, text)
    # Words such as "noise" are settings only if they have a value; others always are.
    for name in sorted(settings, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.-]){name}=({VALUE})", partial(_with_value, name), text)
        if name in OPTIONS and "_" in name:
            text = re.sub(rf"(?<![\w.-])(['\"]?){name}\1(?![\w=])", OPTIONS[name], text)
        elif "_" in name or name == "tol":
            text = re.sub(rf"(?<![\w.-])(?<!set ){name}(?![\w=])", f"{name} (--set {name}=...)", text)
    return text


@contextmanager
def errors_in_options(model: Any) -> Iterator[None]:
    """Translate errors that an estimator raises inside the block to options."""
    try:
        yield
    except Exception as error:
        if error.args and isinstance(error.args[0], str):
            error.args = (in_options(error.args[0], model.get_params(deep=False)), *error.args[1:])
        raise


def _with_value(name: str, found: re.Match[str]) -> str:
    value = found[1]
    plain = value[1:-1] if value[:1] in "'\"" else "null" if value == "None" else value
    return f"{OPTIONS[name]} {plain}" if name in OPTIONS else f"--set {name}={plain}"
