"""Possible outcomes of a fit."""

from enum import StrEnum


class Outcome(StrEnum):
    """Outcome of a fit; the value is the string in ``outcome_``."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    BOUND_FELL = "bound_fell"
    CAUSE_DIED = "cause_died"
    NON_FINITE = "non_finite"
    STOPPED = "stopped"
