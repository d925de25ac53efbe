"""Expectation Truncation: a few candidates for each row, of which a few are active at a time (ET10)."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real

import numpy as np

from multicause.arrays import Array, one_by_one
from multicause.compatibility import Expectation, Requirements, Support
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.parts import resolve
from multicause.posteriors.base import EXPECTATIONS_OF_STATES, OF_STATES, Posterior
from multicause.posteriors.candidate_selection import NAMES, ByFunction, ScalarProduct, Selection
from multicause.posteriors.candidates.candidate_states import CandidateStates
from multicause.posteriors.candidates.candidate_weights import Sums, Weighed, n_own_states, weigh
from multicause.posteriors.candidates.pieces import Pieces
from multicause.posteriors.candidates.preselected_levels import PreselectedLevels
from multicause.posteriors.expectations.shared_states import ARRAYS_PER_MEAN, SharedStates
from multicause.posteriors.expectations.shared_states import ARRAYS_PER_STATE as ARRAYS_PER_SHARED_STATE
from multicause.priors.truncation import at_limit
from multicause.records import Block, Parameters
from multicause.states.state_list import sparse_states

# Numbers of candidates among which a default is chosen; the last is ET10's, and is used for data of any larger size.
# All candidates of a row may be active: on patches of images this gave bounds as high as the same number of states with
# more candidates and fewer active ones, and a row with more causes than can be active gets a bound that is too low by
# hundreds of nats, which decides comparisons of held-out scores.
CANDIDATES = (9, 8, 7, 6, 5)
# Smallest number of active causes that is chosen for a given number of candidates: ET10's.
LEAST_ACTIVE = 3
# The same for states that all rows share, and the number of such states up to which more causes may be active.
LEAST_ACTIVE_SHARED, ENOUGH_SHARED = 5, 2560
# Maximum number of multiply-adds per iteration for the states of candidates; above it, fewer states are chosen.
AFFORDABLE = 5e6
# The same for states that all rows share, which are matrix products (measured: 20 times as many in the same time).
AFFORDABLE_SHARED = 10 * AFFORDABLE
# Maximum number of states that all rows share by default, whose means are in memory for each of them.
MOST_SHARED = 2**12
# Maximum number of states of one row's candidates: compiling more would take minutes.
MOST_STATES = 2**16
# Number of arrays (S', n) that are in memory at once while scores or credits are computed.
ARRAYS_PER_STATE = 8


class Preselected(Posterior):
    """Posterior over states of a few candidates, selected for each row by a cheap score, with few active at a time.

    The states of a row are K_n = {s : |s| ≤ γ, only candidates active} (ET10 eq. 7). The cost per row is about D·H for
    the selection plus D times the number of those states, instead of 2^H. If all causes are candidates, all rows have
    the same states, and nothing is selected.

    Parameters
    ----------
    candidates : int, optional
        H′, the number of causes selected for each row; by default 5 to 9, depending on the size of the data, or all
        causes if their sparse states are few.
    max_active : int, optional
        γ, the maximum number of active candidates; by default all of them, or fewer if those are many.
    singletons : bool, default=True
        Whether to consider all states with one active cause, selected or not (K̄_n of ET10 §4.2.1): it makes learning
        robust, and costs a matrix product that is mostly needed anyway.
    selection : {"auto", "upper_bound", "scalar_product"}, callable or Selection, default="auto"
        Score of the causes: the normalized scalar product (ET10 eq. 33), which "auto" chooses because it is more
        reliable, the upper bound for non-negative components (eq. 28), or
        ``function(rows (n, D), components (H, D))`` that returns scores (n, H) and is written with ``jax.numpy``.
    keep : float or None, default=0.9
        Data cut: in the last third of the annealing, learning is gradually restricted to the rows with the highest
        evidence, finally to ``keep`` times the expected share P(|s| ≤ γ) of all rows (N^cut and eq. 23 of ET10); the
        others probably have more than γ causes. With None, all rows are used.
    """

    offers = EXPECTATIONS_OF_STATES | {Expectation.LEVELS}

    def __init__(
        self,
        candidates: int | None = None,
        max_active: int | None = None,
        *,
        singletons: bool = True,
        selection: str | Callable[[Array, Array], Array] | Selection = "auto",
        keep: float | None = 0.9,
    ) -> None:
        self.candidates = candidates
        self.max_active = max_active
        self.singletons = singletons
        self.selection = selection
        self.keep = keep

    @property
    def requires(self) -> Requirements:  # type: ignore[override]
        """Requirements of inference over candidates and of their selection."""
        selection = NAMES.get(self.selection) if isinstance(self.selection, str) else self.selection
        nonnegative = bool(getattr(selection, "nonnegative", False))
        return OF_STATES.also(
            supports=frozenset({Support.BINARY, Support.LEVELS}), selectable=True, nonnegative=nonnegative
        )

    def validate(self) -> None:
        """Raise ValueError unless all settings are in range and γ ≤ H′."""
        for name in ("candidates", "max_active"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, Integral) or isinstance(value, bool) or value < 1):
                raise ValueError(f"{name} of Preselected must be a whole number of at least 1, or None; got {value!r}.")
        if self.candidates is not None and self.max_active is not None and self.max_active > self.candidates:
            raise ValueError(
                f"Preselected needs max_active <= candidates, because only candidates can be active; got "
                f"max_active={self.max_active} and candidates={self.candidates}. Lower the one or raise the other."
            )
        if self.keep is not None and not (isinstance(self.keep, Real) and 0 < self.keep <= 1):
            raise ValueError(f"keep of Preselected must lie in (0, 1], or be None for all rows; got {self.keep!r}.")
        if not isinstance(self.singletons, bool | np.bool_):
            raise ValueError(f"singletons of Preselected must be True or False; got {self.singletons!r}.")
        if self.selection != "auto" and not callable(self.selection):
            resolve(self.selection, NAMES, "selection", Selection)

    def check(self, n_components: int) -> None:
        """Raise ValueError unless H′ ≤ H and γ ≤ H."""
        if self.max_active is not None and self.max_active > n_components:
            raise ValueError(
                f"Preselected allows max_active={self.max_active} active causes, more than the n_components="
                f"{n_components} that there are. Use at most {n_components}, or leave max_active=None."
            )
        if self.candidates is not None and self.candidates > n_components:
            raise ValueError(
                f"Preselected selects candidates={self.candidates} causes out of n_components={n_components}, which "
                f"are fewer. Use at most {n_components} candidates, or leave candidates=None."
            )

    def bind(self, model: GenerativeModel, n_components: int, n_features: int, n_rows: int) -> Posterior:
        """Return this posterior with numbers H′ and γ that suit the size of the data, and a selection."""
        strengths = model.prior.strengths
        per_state = n_components if model.linear and len(strengths) == 1 else n_features
        candidates, max_active = self._size(model, n_components, per_state * n_rows)
        if self.candidates is None and self.max_active is not None and self.max_active > candidates:
            candidates = min(n_components, int(self.max_active))
            max_active = candidates
        n_states = n_own_states(candidates, max_active, strengths)
        if n_states > MOST_STATES:
            raise ValueError(
                f"Preselected(candidates={candidates}, max_active={max_active}) has {n_states:,} states for every row, "
                f"more than the {MOST_STATES:,} that are practical. Lower max_active or candidates."
            )
        if model.prior.support is Support.LEVELS:
            return self._with_levels(candidates, max_active, strengths)
        return Preselected(
            candidates,
            max_active,
            singletons=self.singletons,
            selection=self._selection(),
            keep=self.keep,
        )

    def _size(self, model: GenerativeModel, n_components: int, cost_of_state: int) -> tuple[int, int]:
        """Return the numbers of candidates and of active causes that suit the size of the data.

        All causes are candidates if their shared states allow as many active ones as a row's own candidates would.
        ``cost_of_state`` is the number of multiply-adds of one state of all rows.
        """
        for candidates, max_active in self._own_sizes(n_components):
            if n_own_states(candidates, max_active, model.prior.strengths) * cost_of_state <= AFFORDABLE:
                break
        shared = self._shared_size(model, n_components, cost_of_state)
        return (candidates, max_active) if shared is None or shared < max_active else (n_components, shared)

    def _own_sizes(self, n_components: int) -> list[tuple[int, int]]:
        """Return numbers of candidates and active causes of a row to choose from, those with most states first."""
        if self.candidates is not None and self.max_active is None:
            return [(self.candidates, number) for number in range(self.candidates, LEAST_ACTIVE, -1)] + [
                (self.candidates, min(self.candidates, LEAST_ACTIVE))
            ]
        numbers = CANDIDATES if self.candidates is None else (self.candidates,)
        sizes = [min(n_components, number) for number in numbers]
        return [(size, size if self.max_active is None else min(size, self.max_active)) for size in sizes]

    def _shared_size(self, model: GenerativeModel, n_components: int, cost_of_state: int) -> int | None:
        """Return the number of active causes if all causes are candidates by default, else None.

        States of a row's own candidates are as cheap as shared ones where causes add up under Gaussian noise.
        """
        may_share_states = self.candidates is None and self.keep is None
        if not may_share_states or model.linear or model.prior.support is not Support.BINARY:
            return None
        least = min(n_components, LEAST_ACTIVE_SHARED)
        largest = None
        for max_active in range(least, n_components + 1) if self.max_active is None else (int(self.max_active),):
            n_states = sparse_states(n_components, max_active).n_states
            most = MOST_SHARED if largest is None else ENOUGH_SHARED
            if n_states > most or n_states * cost_of_state > AFFORDABLE_SHARED:
                break
            largest = max_active
        return largest

    def _with_levels(self, candidates: int, max_active: int, strengths: tuple[float, ...]) -> PreselectedLevels:
        """Return the posterior for causes with a few levels."""
        if self.selection != "auto" or self.keep is not None:
            raise ValueError(
                "Candidates of causes with a few levels are selected by their best single state, and all rows are "
                f"learned from: use Preselected with selection='auto' and keep=None; got selection={self.selection!r} "
                f"and keep={self.keep!r}."
            )
        return PreselectedLevels(candidates, max_active, strengths=strengths, singletons=self.singletons)

    def _selection(self) -> Selection:
        if isinstance(self.selection, Selection) or (isinstance(self.selection, str) and self.selection != "auto"):
            return resolve(self.selection, NAMES, "selection", Selection)
        return ScalarProduct() if self.selection == "auto" else ByFunction(self.selection)  # type: ignore[arg-type]

    def validate_on(self, components: np.ndarray, rows: np.ndarray) -> None:
        """Raise ValueError if a selection function given by the user fails on some rows."""
        self._selection().validate_on(components, rows)

    def with_fewer_states(self, candidates: int, max_active: int) -> Preselected:
        """Return this posterior with fewer candidates and active causes, and without a data cut."""
        numbers = min(candidates, self.numbers[0]), min(max_active, self.numbers[1])
        return Preselected(*numbers, singletons=self.singletons, selection=self.selection, keep=None)

    @property
    def numbers(self) -> tuple[int, int]:
        """H′ and γ; raise ValueError if they are not bound yet."""
        if self.candidates is None or self.max_active is None:
            raise ValueError("Preselected has no numbers yet; bind() chooses them.")
        return self.candidates, self.max_active

    def shares_states(self, n_components: int) -> bool:
        """Return whether all causes are candidates of every row; a data cut needs the weights of each row's states."""
        return self.keep is None and self.numbers[0] >= n_components

    def n_states(self, n_components: int) -> int:
        """Return the number of states: empty, single causes (all or candidates), and those of several candidates."""
        return 1 + (int(n_components) if self.singletons else self.numbers[0]) + n_own_states(*self.numbers)

    def diagnose(self, model: GenerativeModel, parameters: Parameters) -> str:
        """Return a warning if, with a data cut, activities have grown as far as γ allows."""
        activity = model.prior.activity(parameters.prior)
        if self.keep is None or "activity" not in model.learn or not at_limit(activity, self.numbers[1]):
            return ""
        return (
            f"Most rows seem to have max_active={self.numbers[1]} or more active causes, and the data cut cannot tell "
            "how many: activity_ was kept at max_active + 1 expected causes in all, and may be too high. Raise "
            "max_active, or use keep=None."
        )

    def log_mass(self, model: GenerativeModel, parameters: Parameters) -> Array:
        """Return the log prior probability of all states with at most γ active causes."""
        return model.prior.log_mass(parameters.prior, self.numbers[1])

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """Return the memory of a row: a few numbers per state, feature and cause.

        On devices that process all features at once, numbers per state are multiplied by D.
        """
        if self.shares_states(n_components):
            return itemsize * (ARRAYS_PER_SHARED_STATE * self.n_states(n_components) + 2 * n_features)
        states = ARRAYS_PER_STATE * (1 + self.numbers[0] + n_own_states(*self.numbers))
        features = 1 if linear or one_by_one() else n_features
        return itemsize * (states * features + 3 * n_features + 8 * n_components)

    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """Return the memory of a few copies of the components, or of the means of states that all rows share."""
        if self.shares_states(n_components):
            return itemsize * ARRAYS_PER_MEAN * self.n_states(n_components) * n_features
        return itemsize * 8 * n_components * (n_features + n_components)

    def weigh(self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array) -> Weighed:
        """Return candidates and weights of states, the costly part of inference, once per row and iteration."""
        return self._weigh(model, parameters, block, temperature)[0]

    def _weigh(
        self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array
    ) -> tuple[Weighed, Sums]:
        n_components, n_features = parameters.components.shape
        size = (n_components, n_features, block.rows.dtype.itemsize)
        return weigh(
            model,
            parameters,
            block,
            temperature,
            n_candidates=self.numbers[0],
            max_active=self.numbers[1],
            selection=self.selection,  # type: ignore[arg-type]
            singletons=self.singletons,
            pieces=Pieces.for_cache(len(block.rows), self.bytes_per_row(*size, linear=model.linear)),
        )

    def infer_from(
        self,
        model: GenerativeModel,
        parameters: Parameters,
        block: Block,
        temperature: Array,
        weighed: Weighed,
        threshold: Array | None = None,
    ) -> CandidateStates:
        """Return expectations from the result of :meth:`weigh`, without rows of free energy below the threshold."""
        tree = sparse_states(*self.numbers)
        return CandidateStates(model, parameters, tree, block, temperature, weighed, threshold)

    def infer(self, model: GenerativeModel, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """Select candidates, compute the weights of their states, and return expectations."""
        if self.shares_states(len(parameters.components)):
            tree = sparse_states(len(parameters.components), self.numbers[1])
            return SharedStates(model, parameters, tree, block, temperature)
        weighed, sums = self._weigh(model, parameters, block, temperature)
        tree = sparse_states(*self.numbers)
        return CandidateStates(model, parameters, tree, block, temperature, weighed, sums=sums)
