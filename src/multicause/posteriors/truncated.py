"""The truncated posterior: all states with few active causes, the same for every row (MCA08 §4)."""

from __future__ import annotations

from math import comb
from numbers import Integral

import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.compatibility import Support
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.posteriors.base import EXPECTATIONS_OF_STATES, OF_STATES, Posterior
from multicause.posteriors.expectations.truncated_states import TruncatedStates
from multicause.records import Block, Parameters

# Number of arrays (S, n) that are in memory at once: products, log joint, its scaled copy, and the weights.
ARRAYS_PER_STATE = 4
# Number of arrays (S, D): means and their natural parameters; others are for states with credit only, which are few.
ARRAYS_PER_MEAN = 3


class Truncated(Posterior):
    """Posterior over all states with at most ``max_active`` active causes; only those with fewer update the components.

    ``Truncated(3)`` is MCA₃ of MCA08: pairs have credit and triples compete (eq. 16), and the activities count triples
    α times (eq. 17), where α is adapted until the number of rows with fewer than three causes agrees with the
    activities (eq. 33 and 34). The cost per row is D·H^γ/γ!, so it is meant for tens of causes; ``Preselected`` for
    hundreds.

    The empty state has its probability under the noise. Eq. 16 uses the probability of a row of zeros in every row,
    which finds all standard bars in 92 instead of 88 of 100 trials with noise, and in 85 instead of 79 without.

    Parameters
    ----------
    max_active : int, default=3
        γ, the maximum number of active causes of a state, at least 2.
    empty_state : bool, default=True
        Whether a row that is not all zero may have no active cause. False is for data without such rows (MCA08
        appendix C.2).
    compensate : bool, default=True
        Whether α is learned; otherwise it stays at one, which is the plain truncated sum.
    max_states : int, default=65536
        Maximum number of states; more raise an error.
    """

    # Credit is not the derivative of the bound over these states, so EM does not ascend it.
    ascends_bound = False
    requires = OF_STATES.also(supports=frozenset({Support.BINARY}), selectable=True)
    offers = EXPECTATIONS_OF_STATES

    def __init__(
        self, max_active: int = 3, *, empty_state: bool = True, compensate: bool = True, max_states: int = 2**16
    ) -> None:
        self.max_active: int = max_active
        self.empty_state = empty_state
        self.compensate = compensate
        self.max_states = max_states

    def validate(self) -> None:
        """Raise ValueError if a setting is invalid; γ ≥ 2, because states with γ causes compete with sparser ones."""
        if not isinstance(self.max_active, Integral) or isinstance(self.max_active, bool) or self.max_active < 2:
            raise ValueError(
                f"max_active of Truncated must be a whole number of at least 2, because states with max_active causes "
                f"compete with those that have fewer; got {self.max_active!r}."
            )
        for name in ("empty_state", "compensate"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} of Truncated must be True or False; got {getattr(self, name)!r}.")
        if not isinstance(self.max_states, Integral) or self.max_states < 2:
            raise ValueError(f"max_states of Truncated must be a whole number of at least 2; got {self.max_states!r}.")

    def n_states(self, n_components: int) -> int:
        """Return the number of states, Σ_k (H over k) for k up to γ."""
        return sum(comb(int(n_components), k) for k in range(int(self.max_active) + 1))

    def check(self, n_components: int) -> None:
        """Raise ValueError unless γ ≤ H and states can be enumerated. A single cause is allowed, without pairs."""
        if self.max_active > max(n_components, 2):
            raise ValueError(
                f"Truncated allows max_active={self.max_active} active causes, more than the n_components="
                f"{n_components} that there are. Use at most {n_components}, or posterior='exact'."
            )
        n_states = self.n_states(n_components)
        if n_states > self.max_states:
            raise ValueError(
                f"Truncated(max_active={self.max_active}) of {n_components} causes has {n_states:,} states, more than "
                f"max_states={self.max_states:,}. Lower max_active or n_components, use posterior='preselected', which "
                "has a few dozen states for each row, or allow more with Truncated(max_states=...)."
            )

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """Return the memory of a row: a few numbers for each state."""
        return itemsize * (ARRAYS_PER_STATE * self.n_states(n_components) + 2 * n_features)

    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the memory of states: a few numbers for each dimension of each state."""
        return itemsize * ARRAYS_PER_MEAN * self.n_states(n_components) * n_features

    def infer(self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """Return expectations over all sparse states, which are the same for all rows."""
        return TruncatedStates(
            model, parameters, int(self.max_active), block, temperature, empty_state=bool(self.empty_state)
        )

    def log_mass(self, model: GenerativeModel, parameters: Parameters) -> Array:
        """Return the log prior probability of all states with at most γ active causes."""
        return model.prior.log_mass(parameters.prior, int(self.max_active))

    def initialize(self) -> dict[str, np.ndarray]:
        """Return the initial compensation α = 1."""
        return {"compensation": np.ones(())}

    def statistics(self, inference: Inference) -> dict[str, Array]:
        """Return the expected number of rows with fewer than γ active causes."""
        assert isinstance(inference, TruncatedStates)
        return {"sparse": inference.total_sparse}

    def maximize(
        self, model: GenerativeModel, parameters: Parameters, statistics: dict[str, Array], weight: Array
    ) -> dict[str, Array]:
        """Return the new compensation α + P(|s| < γ) − (rows with fewer than γ causes) / N, after eq. 34."""
        if not self.compensate:
            return parameters.posterior
        old = parameters.posterior["compensation"]
        expected = jnp.exp(model.prior.log_mass(parameters.prior, int(self.max_active) - 1))
        alpha = old + expected - statistics["sparse"] / weight
        return {"compensation": jnp.maximum(alpha, 0).astype(old.dtype)}
