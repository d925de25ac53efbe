"""Translation of the library's messages to the command line, where ``max_iter`` is ``--iterations``."""

from __future__ import annotations

import ast
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
#: Settings of :class:`multicause.datasets.reading.Reading` that have an option of another name.
READING_OPTIONS = {"separator": "--sep", "image_shape": "--image-shape", "sample_rate": "--sample-rate"}
#: All settings of reading that messages may name.
READING = (
    *("array", "decimal", "thousands", "encoding", "header", "index", "drop", "patches", "count", "scale", "sound"),
    *("frames", "length", "channel", "dtype", *READING_OPTIONS),
)
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


def reading_in_options(text: str) -> str:
    """Translate a message on files that are read, such as "Use separator=';'", for a user of the command line."""
    text = text.replace("model.impute(X)", "'multicause reconstruct --impute'")
    names = "|".join(READING)
    text = re.sub(rf"(?<![\w.'\"-])({names})(?= must be )", lambda match: _reading_option(match[1]), text)
    text = re.sub(rf"(?<![\w.'\"-])({names})=\.\.\.", lambda match: _reading_option(match[1]), text)
    return re.sub(rf"(?<![\w.'\"-])({names})=({VALUE})", _reading_value, text)


@contextmanager
def reading_errors_in_options() -> Iterator[None]:
    """Translate errors that reading of files raises inside the block to options."""
    try:
        yield
    except (ValueError, OSError) as error:
        if len(error.args) == 1 and isinstance(error.args[0], str):
            error.args = (reading_in_options(error.args[0]),)
        raise


@contextmanager
def errors_in_options(model: Any) -> Iterator[None]:
    """Translate errors that an estimator raises inside the block to options."""
    try:
        yield
    except Exception as error:
        if error.args and isinstance(error.args[0], str):
            error.args = (in_options(error.args[0], model.get_params(deep=False)), *error.args[1:])
        raise


def _with_value(name: str, match: re.Match[str]) -> str:
    value = match[1]
    plain = value[1:-1] if value[:1] in "'\"" else "null" if value == "None" else value
    return f"{OPTIONS[name]} {plain}" if name in OPTIONS else f"--set {name}={plain}"


def _reading_option(name: str) -> str:
    return "--header or --no-header" if name == "header" else READING_OPTIONS.get(name, f"--{name}")


def _reading_value(match: re.Match[str]) -> str:
    name = match[1]
    try:
        value = ast.literal_eval(match[2])
    except (SyntaxError, ValueError):  # the name belongs to a text of the user
        return match[0]
    if name == "header":
        return "--header" if value else "--no-header"
    if isinstance(value, tuple):
        value = ("x" if name in ("patches", "image_shape") else ",").join(map(str, value))
    plain = re.fullmatch(r"[\w.,-]*\w[\w.,-]*", str(value)) is not None
    return f"{_reading_option(name)} {value if plain else repr(value)}"
