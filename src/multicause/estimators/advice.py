"""Meaning of the outcome of a fit, and advice to the user of an estimator."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from multicause.outcomes import Outcome
from multicause.runtime.scikit_learn import Options, constraints_of_setting
from multicause.runtime.user_warnings import warn_user

#: Meaning of each unsuccessful outcome.
MEANINGS = {
    Outcome.MAX_ITER: "Learning had not converged when it ended.",
    Outcome.BOUND_FELL: "The lower bound fell, and the parameters before the fall were kept.",
    Outcome.CAUSE_DIED: "At least one cause explains no row any more, is zero, or is a copy of another.",
    Outcome.NON_FINITE: "Parameters or the bound became infinite or NaN, and the last finite ones were kept.",
}


class Advice(NamedTuple):
    """Explanation of an outcome, which names no setting, and a list of remedies."""

    meaning: str
    remedies: tuple[str, ...] = ()

    def __str__(self) -> str:
        remedies = [text[:1].upper() + text[1:] if number == 0 else text for number, text in enumerate(self.remedies)]
        numbered = "; ".join(f"({number}) {text}" for number, text in enumerate(remedies, start=1))
        return f"{self.meaning} {numbered}." if numbered else self.meaning


def advice_on(outcome: Outcome, estimator: Any) -> Advice | None:
    """Return advice on an outcome that mentions only settings of this estimator; None if the fit succeeded."""
    if outcome not in MEANINGS:
        return None
    settings = estimator.get_params(deep=False)
    of_outcome = {
        Outcome.MAX_ITER: [
            _if("max_iter" in settings, "raise max_iter"),
            _if("tol" in settings, "raise tol if the last values of lower_bounds_ hardly differ"),
            _if(_has_schedule(settings), "shorten the annealing"),
        ],
        Outcome.BOUND_FELL: [
            _if(is_single_precision(estimator), "use float64 data"),
            _if("tol" in settings, "raise tol"),
            _if("update" in settings, "try another update"),
            _if("random_state" in settings, "try another random_state"),
        ],
        Outcome.CAUSE_DIED: [
            _if("n_components" in settings, "lower n_components (activity_ says how often each cause is used)"),
            _on_annealing(estimator, settings),
            _if("n_init" in settings, "raise n_init"),
            _if("random_state" in settings, "change random_state"),
        ],
        Outcome.NON_FINITE: [
            "scale X to moderate values",
            _if(is_single_precision(estimator), "use float64 data"),
            _if("noise_scale" in settings, "give a larger noise_scale"),
            _if("min_variance" in settings, "give a larger min_variance"),
        ],
    }
    return Advice(MEANINGS[outcome], tuple(text for text in of_outcome[outcome] if text))


def energy_advice_on(outcome: Outcome, estimator: Any) -> Advice | None:
    """Return advice on an outcome of an energy-based model, whose outcomes have other meanings."""
    if outcome is Outcome.MAX_ITER:
        return Advice(
            f"Filters moved by {estimator.drift_:.2g} of their size in the last quarter of learning, or the sampler "
            "had not found its step size.",
            (
                "raise max_iter, so that filters and acceptance_rates_ settle",
                "lower final_learning_rate or raise batch_size, for less noise at the end",
                f"raise tol, which is {estimator.tol:.2g} of the filters' size",
            ),
        )
    if outcome is Outcome.NON_FINITE:
        remedies = [
            "lower learning_rate",
            "check that the expert is finite for all activities",
            "whiten X or scale it to moderate values",
            _if(is_single_precision(estimator), "use float64 data"),
        ]
        meaning = "Filters, or the energy of data, became infinite or NaN, and the last finite filters were kept."
        return Advice(meaning, tuple(text for text in remedies if text))
    return advice_on(outcome, estimator)


def is_single_precision(estimator: Any) -> bool:
    """Return whether a fitted estimator was learned in single precision, which follows the data."""
    return bool(estimator.components_.dtype == np.float32)


def _if(applies: bool, text: str) -> str:
    """Return a text if it applies, else an empty one."""
    return text if applies else ""


def _has_schedule(settings: dict[str, Any]) -> bool:
    """Return whether the user has given an annealing schedule, which "auto" is not."""
    return settings.get("annealing") not in (None, "auto")


def _on_annealing(estimator: Any, settings: dict[str, Any]) -> str:
    """Return advice on the annealing, which may already be on by default."""
    known = constraints_of_setting(estimator, "annealing")
    offers_auto = any(isinstance(constraint, Options) and "auto" in constraint.options for constraint in known)
    ways = [
        _if(_has_schedule(settings), "anneal from a lower temperature"),
        _if("annealing" in settings and offers_auto and settings["annealing"] != "auto", "use annealing='auto'"),
    ]
    return " or ".join(way for way in ways if way)


def outcome_of_batch(finite: bool) -> Outcome:
    """Return the outcome of one call of ``partial_fit``.

    It is "max_iter" (without a warning) if all steps were done, or "non_finite" if parameters became infinite and were
    not stored.
    """
    return Outcome.MAX_ITER if finite else Outcome.NON_FINITE


def warn_of_convergence(outcome: Outcome, advice: Advice | None) -> None:
    """Issue a ConvergenceWarning with advice on an outcome, if there is any."""
    warn("" if advice is None else f"outcome_={outcome.value!r}: {advice}")


def warn(message: str) -> None:
    """Issue a ConvergenceWarning with the message, unless it is empty, for the user's line that called the package."""
    warn_user(message, ConvergenceWarning)
