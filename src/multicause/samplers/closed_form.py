"""The model's side of learning without a Markov chain, where the partition function is known (EBM01 §4)."""

from multicause.samplers.base import Sampler


class Exact(Sampler):
    """The gradient of the log partition function itself, as Bell and Sejnowski have it: for ICA, −W⁻ᵀ (EBM01 eq. 6).

    Needs one layer, at most as many components as dimensions, and an expert with ``log_partition``.
    """


class Equilibrium(Sampler):
    """Independent samples from the model, as many as there are rows in a mini-batch.

    Needs one layer, at most as many components as dimensions, and an expert with ``draw``.
    """
