"""Summary table of the models, generated from their classes, after the appendix of TN10."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from multicause.engines import Local

HEADINGS = ("model", "causes and data", "recognition", "learning", "prior × combination × noise", "posterior, update")


class ModelSummary(NamedTuple):
    """One-line description of a model."""

    generative: str
    recognition: str
    learning: str


def summary_table(estimators: Iterable[type[Any]]) -> str:
    """Return a Markdown table with one line for each of some classes of models.

    Equations are those that a class gives as ``summary``; parts are read from the model that it wires.
    """
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + " --- |" * len(HEADINGS)]
    for estimator in estimators:
        model = estimator()._wire(Local().load(np.zeros((100, 10))))
        brief = estimator.summary
        joint = " × ".join(_describe(part) for part in (model.prior, model.combination, model.noise))
        how = ", ".join(_describe(part) for part in (model.posterior, model.update))
        cells = (f"`{estimator.__name__}`", brief.generative, brief.recognition, brief.learning, joint, how)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _describe(part: Any) -> str:
    """Return the class of a part, with hyper-parameters that differ from the defaults."""
    default = type(part)().get_params()
    changed = [f"{name}={value!r}" for name, value in part.get_params().items() if value != default[name]]
    return f"`{type(part).__name__}({', '.join(changed)})`" if changed else f"`{type(part).__name__}`"
