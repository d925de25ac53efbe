"""The exact posterior, which enumerates all 2^H states: MCA08 eq. 12."""

from __future__ import annotations

from numbers import Integral

from multicause.arrays import Array
from multicause.compatibility import Expectation, Support
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.posteriors.base import EXPECTATIONS_OF_STATES, OF_STATES, Posterior
from multicause.posteriors.beam import Beam
from multicause.posteriors.expectations.shared_states import ARRAYS_PER_MEAN, ARRAYS_PER_STATE, SharedStates
from multicause.records import Block, Parameters
from multicause.states.state_list import all_states

# Number of causes up to which the error message contains the number of states.
PRINTABLE = 64
# Names of posteriors that consider fewer states, for that message.
OTHERS = ("truncated", "preselected", "beam", "evolved")


class Exact(Posterior):
    """Posterior that enumerates all states, for at most about 16 causes.

    Parameters
    ----------
    max_states : int, default=65536
        Maximum number of states; more raise an error.
    """

    monotone = True
    requires = OF_STATES.also(
        supports=frozenset({Support.BINARY, Support.ONE_HOT, Support.NORMAL_SLABS, Support.LEVELS})
    )
    offers = EXPECTATIONS_OF_STATES | {Expectation.LEVELS}

    def __init__(self, *, max_states: int = 2**16) -> None:
        self.max_states = max_states

    def validate(self) -> None:
        """Raise ValueError unless ``max_states`` is an integer of at least 2, the number of states of one cause."""
        if not isinstance(self.max_states, Integral) or self.max_states < 2:
            raise ValueError(f"max_states of Exact must be a whole number of at least 2; got {self.max_states!r}.")

    @property
    def bound_label(self) -> str:
        """Description of the bound, which is the log evidence itself."""
        return "log evidence"

    def shares_states(self, n_components: int) -> bool:
        """Return True: every row has all states."""
        return True

    def n_states(self, n_components: int) -> int:
        """Return the number of states, 2^H."""
        return 2 ** int(n_components)

    def bind(self, model: GenerativeModel, n_components: int, n_features: int, n_rows: int) -> Exact:
        """Return a posterior for causes with a strength or levels, which have more states, or this one for others."""
        if model.prior.support is Support.NORMAL_SLABS:
            return ExactStrengths(max_states=self.max_states)
        if model.prior.support is not Support.LEVELS:
            return self
        bound = ExactLevels(model.prior.strengths, max_states=self.max_states)
        bound.check(n_components)
        return bound

    def check(self, n_components: int) -> None:
        """Raise ValueError if there are more than ``max_states`` states."""
        most = int(self.max_states).bit_length() - 1
        if n_components > most:
            others = "".join(f"posterior={name!r}, " for name in OTHERS)
            count = f" = {2 ** int(n_components):,}" if n_components <= PRINTABLE else ""
            raise ValueError(
                f"The exact posterior of {n_components} causes has 2^{n_components}{count} states, more than "
                f"max_states={self.max_states:,}. Use n_components of at most {most}, {others}or allow more with "
                "posterior=Exact(max_states=...)."
            )

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """Return the memory of a row: a few numbers for each state."""
        return itemsize * (ARRAYS_PER_STATE * self.n_states(n_components) + 2 * n_features)

    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the memory of states: a few numbers for each dimension of each state."""
        return itemsize * ARRAYS_PER_MEAN * self.n_states(n_components) * n_features

    def infer(self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """Return expectations over all states, which are the same for all rows."""
        tree = all_states(parameters.components.shape[0])
        return SharedStates(model, parameters, tree, block, temperature)


class ExactLevels(Exact):
    """Posterior that enumerates all states of causes with a few levels. :meth:`Exact.bind` returns it for such causes.

    Parameters
    ----------
    strengths : tuple of float
        Levels other than zero.
    max_states : int, default=65536
        Maximum number of states; more raise an error.
    """

    def __init__(self, strengths: tuple[float, ...] = (1,), *, max_states: int = 2**16) -> None:
        super().__init__(max_states=max_states)
        self.strengths = strengths

    def n_states(self, n_components: int) -> int:
        """Return the number of states, K^H for K levels."""
        return (1 + len(self.strengths)) ** int(n_components)

    def bind(self, model: GenerativeModel, n_components: int, n_features: int, n_rows: int) -> Exact:
        """Return this posterior, which is bound already."""
        return self

    def check(self, n_components: int) -> None:
        """Raise ValueError if there are more than ``max_states`` states."""
        if self.n_states(n_components) > self.max_states:
            raise ValueError(
                f"The exact posterior of {n_components} causes with {1 + len(self.strengths)} levels has "
                f"{1 + len(self.strengths)}^{n_components} states, more than max_states={self.max_states:,}. Use fewer "
                "causes, posterior='preselected', or allow more with posterior=Exact(max_states=...)."
            )

    def infer(self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """Return expectations over all states, which are the same for all rows."""
        tree = all_states(parameters.components.shape[0], self.strengths)
        return SharedStates(model, parameters, tree, block, temperature)


class ExactStrengths(Exact):
    """Posterior that enumerates all states of causes with a strength, which is normally distributed given a state.

    :meth:`Exact.bind` returns it for such causes.
    """

    offers = EXPECTATIONS_OF_STATES - {Expectation.CREDIT}

    def _search(self, n_components: int) -> Beam:
        """Return a beam search that keeps all states."""
        return Beam(max_active=int(n_components), width=self.n_states(n_components))

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """Return the memory of a row, including covariances of all states."""
        return self._search(n_components).bytes_per_row(n_components, n_features, itemsize, linear)

    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the memory of moments of the causes."""
        return self._search(n_components).bytes_of_states(n_components, n_features, itemsize)

    def infer(self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """Return expectations over all states, and the strengths of their active causes."""
        return self._search(len(parameters.components)).infer(model, parameters, block, temperature)
