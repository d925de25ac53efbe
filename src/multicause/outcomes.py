"""How a fit can end."""

from enum import StrEnum


class Outcome(StrEnum):
    """How a fit ended; the value is the name in ``outcome_``."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    BOUND_FELL = "bound_fell"
    CAUSE_DIED = "cause_died"
    NON_FINITE = "non_finite"
    STOPPED = "stopped"
