"""Model expectations without a Markov chain, for models whose partition function is known (EBM01 §4)."""

from multicause.samplers.base import ModelExpectation, Sampler


class ExactGradient(Sampler):
    """Exact gradient of the log partition function, as in Bell and Sejnowski's ICA, where it is −W⁻ᵀ (EBM01 eq. 6).

    Needs one layer, at most as many components as dimensions, and an expert with ``log_partition``.
    """

    expectation = ModelExpectation.GRADIENT
    needs_of_expert = ("log_partition",)


class Equilibrium(Sampler):
    """Independent samples from the model's distribution, as many as there are rows in a mini-batch.

    Needs one layer, at most as many components as dimensions, and an expert with ``log_partition`` and ``draw``.
    """

    expectation = ModelExpectation.DRAWS
    needs_of_expert = ("log_partition", "draw")
