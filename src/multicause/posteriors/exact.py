"""The exact posterior: every one of the 2^H states, MCA08 eq. 12."""

from __future__ import annotations

from numbers import Integral

from multicause.arrays import Array
from multicause.compatibility import Expectation, Support
from multicause.model import Block, Model, Parameters
from multicause.posteriors.base import EXPECTATIONS_OF_STATES, OF_STATES, Inference, Posterior
from multicause.posteriors.beam import Beam
from multicause.posteriors.shared_states import SharedStates
from multicause.posteriors.state_tree import all_states

# Arrays of (S, n) that are alive at once inside SharedStates: log-joint, its scaled copy, and the weights.
ARRAYS_PER_STATE = 3
# Arrays of (S, D): means, their natural parameters, sums over rows, credits and the tree that they descend.
ARRAYS_PER_MEAN = 12
# Numbers of causes up to which an error spells out the number of states.
PRINTABLE = 64


class Exact(Posterior):
    """Enumerate all states; for about 16 causes at most.

    Parameters
    ----------
    max_states : int, default=65536
        Refuse to enumerate more states than this.
    """

    monotone = True
    exhaustive = True
    requires = OF_STATES.also(supports=frozenset({Support.BINARY, Support.ONE_HOT, Support.SPIKE_SLAB}))
    offers = EXPECTATIONS_OF_STATES

    def __init__(self, *, max_states: int = 2**16) -> None:
        self.max_states = max_states

    def validate(self) -> None:
        """One cause has two states."""
        if not isinstance(self.max_states, Integral) or self.max_states < 2:
            raise ValueError(f"max_states of Exact must be a whole number of at least 2; got {self.max_states!r}.")

    @property
    def bound_label(self) -> str:
        """The log evidence itself."""
        return "log evidence"

    def n_states(self, n_components: int) -> int:
        """2^H."""
        return 2 ** int(n_components)

    def resolved(self, model: Model, n_components: int, n_features: int, n_rows: int) -> Exact:
        """Return the same for causes with a strength, whose states take more memory."""
        return ExactStrengths(max_states=self.max_states) if model.prior.support is Support.SPIKE_SLAB else self

    def check(self, n_components: int) -> None:
        """Refuse what would not end."""
        most = int(self.max_states).bit_length() - 1
        if n_components > most:
            from multicause.posteriors import NAMES

            others = "".join(f"posterior={name!r}, " for name in NAMES if name != "exact")
            count = f" = {2 ** int(n_components):,}" if n_components <= PRINTABLE else ""
            raise ValueError(
                f"The exact posterior of {n_components} causes has 2^{n_components}{count} states, more than "
                f"max_states={self.max_states:,}. Use n_components of at most {most}, {others}or allow more with "
                "posterior=Exact(max_states=...)."
            )

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """A few numbers for each state."""
        return itemsize * (ARRAYS_PER_STATE * self.n_states(n_components) + 2 * n_features)

    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """A few numbers for each dimension of each state."""
        return itemsize * ARRAYS_PER_MEAN * self.n_states(n_components) * n_features

    def infer(self, model: Model, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """All states, in one list for all rows."""
        tree = all_states(parameters.components.shape[0])
        return SharedStates(model, parameters, tree, block, temperature)


class ExactStrengths(Exact):
    """Enumerate all states of causes with a strength, whose posterior is normal given a state.

    It is what :class:`Exact` becomes for such causes.
    """

    offers = EXPECTATIONS_OF_STATES - {Expectation.CREDIT}

    def _search(self, n_components: int) -> Beam:
        """Return a beam search that keeps all states."""
        return Beam(max_active=int(n_components), width=self.n_states(n_components))

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """Return the memory for covariances of all states."""
        return self._search(n_components).bytes_per_row(n_components, n_features, itemsize, linear)

    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the memory for moments of the causes."""
        return self._search(n_components).bytes_of_states(n_components, n_features, itemsize)

    def infer(self, model: Model, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """Return expectations over all states."""
        return self._search(len(parameters.components)).infer(model, parameters, block, temperature)
