"""Beam search as a posterior: states of a row grow by the causes that best explain its residual."""

from __future__ import annotations

from numbers import Integral

from multicause.arrays import Array
from multicause.compatibility import Expectation, Likelihood, Link, Requirements, Rule, Spread, Support
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.posteriors.base import Posterior
from multicause.posteriors.beams.beam_search import numbers_of_states
from multicause.posteriors.beams.beam_states import BeamStates
from multicause.posteriors.beams.log_joint_beam import LogJointBeam
from multicause.posteriors.expectations.observed import mask_of
from multicause.records import Block, Parameters

# Number of arrays (m, width, H) that are in memory at once while states grow.
ARRAYS_PER_CAUSE = 6


class Beam(Posterior):
    """Posterior over the states of a beam search, which adds one cause at a time and keeps the best states of each
    size.

    States with k + 1 active causes are obtained from those with k by adding any one cause; the ``width`` states with
    the largest log p(s, y) are kept and extended further. All states that were kept, and the empty one, are the states
    of the row. Preselection compares each cause with the whole row; here a cause is compared with the residual of the
    active ones. The search is deterministic and keeps nothing between iterations. With a width and ``max_active`` that
    allow all states, the posterior is exact.

    Parameters
    ----------
    max_active : int, default=5
        γ, the largest number of active causes of a state; at most all causes.
    width : int, default=8
        B, the number of states of each size that are kept.
    """

    requires = Requirements(
        supports=frozenset({Support.BINARY, Support.NORMAL_SLABS}),
        rules=frozenset({Rule.SUM}),
        links=frozenset({Link.MEAN}),
        likelihoods=frozenset({Likelihood.OF_MEANS}),
        spreads=frozenset({Spread.CONSTANT}),
        selectable=True,
    )
    offers = frozenset({Expectation.MOMENTS, Expectation.LIKELIHOOD, Expectation.RESIDUALS})

    max_active: int

    def __init__(self, max_active: int = 5, width: int = 8) -> None:
        self.max_active = max_active
        self.width = width

    def validate(self) -> None:
        """Raise ValueError unless ``max_active`` and ``width`` are positive integers."""
        for name in ("max_active", "width"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} of Beam must be a whole number of at least 1; got {value!r}.")

    def check(self, n_components: int) -> None:
        """Accept any number of causes."""
        return

    def n_states(self, n_components: int) -> int:
        """Return the number of states of a row, including the empty one."""
        return 1 + sum(self._kept(n_components))

    def _kept(self, n_components: int) -> list[int]:
        return numbers_of_states(int(n_components), int(self.max_active), int(self.width))

    def log_joint_search(self) -> LogJointBeam:
        """Return the same search for models that are only known by their log joint."""
        return LogJointBeam(int(self.max_active), int(self.width))

    def log_mass(self, model: GenerativeModel, parameters: Parameters) -> Array:
        """Return log P(|s| ≤ γ) under the prior."""
        n_components = len(parameters.components)
        return model.prior.log_mass(parameters.prior, min(int(self.max_active), n_components))

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """Return the memory of a row for several numbers per kept state and cause, and for covariances of states.

        If values are missing, a row also has moments of its causes, and their components.
        """
        kept = self._kept(n_components)
        covariances = sum(n_states * size**2 for size, n_states in enumerate(kept, 1))
        n_causes = 0 if linear else min(sum(kept), n_components)
        per_state = ARRAYS_PER_CAUSE * n_components + 2 * n_features
        of_causes = n_causes * (n_causes + 2 * n_features)
        return itemsize * (max(kept) * per_state + 4 * covariances + of_causes + 3 * n_features + 4 * n_components)

    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the memory of components, their Gram matrix, and second moments in double precision."""
        return itemsize * 6 * n_components * (n_components + n_features)

    def infer(self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """Search the states of all rows, and return expectations over them."""
        kept = self._kept(len(parameters.components))
        return BeamStates(model, parameters, block, temperature, kept, mask_of(model, block.rows))
