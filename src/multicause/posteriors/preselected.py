"""Expectation Truncation: few candidates for each row, and few of them active at a time (ET10)."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np

from multicause.arrays import Array, one_by_one
from multicause.compatibility import Requirements, Support
from multicause.parts import resolve
from multicause.posteriors.base import EXPECTATIONS_OF_STATES, OF_STATES, Inference, Posterior
from multicause.posteriors.candidate_states import CandidateStates, Sums, Weighed, n_own_states, weigh
from multicause.posteriors.pieces import Pieces
from multicause.posteriors.selection import NAMES, ByFunction, ScalarProduct, Selection
from multicause.priors.truncation import at_limit
from multicause.states.state_list import sparse_states

if TYPE_CHECKING:
    from multicause.model import Block, Model, Parameters

# Candidates and active causes that are chosen where the user leaves them open, from the richest to the leanest; the
# last is ET10's, and is taken however large the data.
LADDER = ((10, 5), (8, 5), (8, 4), (7, 4), (6, 4), (6, 3), (5, 3))
# Multiply-adds of one iteration that the states of candidates may take before a leaner choice is made.
AFFORDABLE = 5e6
# States of one row's candidates beyond which the user is asked for fewer: to compile them would take minutes.
MOST_STATES = 2**16
# Arrays of (S', n) that are alive at once while scores are formed or credits handed down.
ARRAYS_PER_STATE = 8


class Preselected(Posterior):
    """Select candidates for each row by a cheap score, and enumerate their states with few active causes.

    The states of a row are K_n = {s : |s| ≤ γ, only candidates active} (ET10 eq. 7). The cost of a row is about D·H for
    the selection plus D times the number of those states, instead of 2^H.

    Parameters
    ----------
    candidates : int, optional
        H′, how many causes are selected for each row; by default 5 to 10, what the size of the data allows.
    max_active : int, optional
        γ, how many of them are active at most; by default 3 to 5.
    singletons : bool, default=True
        Whether all states with one active cause are considered too, selected or not (K̄_n of ET10 §4.2.1): it makes
        learning robust, and costs a matrix product that is mostly needed anyway.
    selection : {"auto", "upper_bound", "scalar_product"}, callable or Selection, default="auto"
        The score: the normalised scalar product (ET10 eq. 33), which "auto" chooses because it is more reliable, the
        upper bound for components that are not negative (eq. 28), or
        ``function(rows (n, D), components (H, D))`` that returns scores (n, H) and is written with ``jax.numpy``.
    keep : float or None, default=0.9
        The data cut: in the last third of the annealing, learning comes to rely on the rows with the highest evidence,
        finally on ``keep`` times the share that P(|s| ≤ γ) of them should have (N^cut and eq. 23 of ET10); the others
        probably have more causes than γ. None learns from all rows.
    """

    offers = EXPECTATIONS_OF_STATES

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
        """Return what candidates need, and what their selection needs."""
        selection = NAMES.get(self.selection) if isinstance(self.selection, str) else self.selection
        nonnegative = bool(getattr(selection, "nonnegative", False))
        return OF_STATES.also(supports=frozenset({Support.BINARY}), selectable=True, nonnegative=nonnegative)

    def validate(self) -> None:
        """Numbers in range, and γ ≤ H′."""
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
        """H′ ≤ H, γ ≤ H, and states that can be enumerated."""
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

    def bind(self, model: Model, n_components: int, n_features: int, n_rows: int) -> Preselected:
        """Numbers for H′ and γ that the size of the data allows, and a selection that suits the components."""
        per_state = n_components if model.linear else n_features
        for candidates, max_active in LADDER:
            candidates = min(n_components, candidates if self.candidates is None else self.candidates)
            max_active = min(candidates, max_active if self.max_active is None else self.max_active)
            if n_rows * n_own_states(candidates, max_active) * per_state <= AFFORDABLE:
                break
        if self.candidates is None and self.max_active is not None and self.max_active > candidates:
            candidates = min(n_components, int(self.max_active))
            max_active = candidates
        n_states = n_own_states(candidates, max_active)
        if n_states > MOST_STATES:
            raise ValueError(
                f"Preselected(candidates={candidates}, max_active={max_active}) has {n_states:,} states for every row, "
                f"more than the {MOST_STATES:,} that are practical. Lower max_active or candidates."
            )
        return Preselected(
            candidates,
            max_active,
            singletons=self.singletons,
            selection=self._selection(),
            keep=self.keep,
        )

    def _selection(self) -> Selection:
        if isinstance(self.selection, Selection) or (isinstance(self.selection, str) and self.selection != "auto"):
            return resolve(self.selection, NAMES, "selection", Selection)
        return ScalarProduct() if self.selection == "auto" else ByFunction(self.selection)  # type: ignore[arg-type]

    def validate_on(self, components: np.ndarray, rows: np.ndarray) -> None:
        """Only a user's own selection may fail."""
        if isinstance(self.selection, ByFunction):
            self.selection.validate_on(components, rows)

    def leaner(self, candidates: int, max_active: int) -> Preselected:
        """The same with fewer candidates and active causes, which learns from all rows."""
        numbers = min(candidates, self.numbers[0]), min(max_active, self.numbers[1])
        return Preselected(*numbers, singletons=self.singletons, selection=self.selection, keep=None)

    @property
    def numbers(self) -> tuple[int, int]:
        """H′ and γ, once resolved."""
        if self.candidates is None or self.max_active is None:
            raise ValueError("Preselected has no numbers yet; resolved() chooses them.")
        return self.candidates, self.max_active

    def n_states(self, n_components: int) -> int:
        """The empty state, single causes (all or the candidates), and those of two and more candidates."""
        return 1 + (int(n_components) if self.singletons else self.numbers[0]) + n_own_states(*self.numbers)

    def diagnose(self, model: Model, parameters: Parameters) -> str:
        """With a data cut, whether activities have grown as far as γ allows."""
        activity = model.prior.activity(parameters.prior)
        if self.keep is None or "activity" not in model.learn or not at_limit(activity, self.numbers[1]):
            return ""
        return (
            f"Most rows seem to have max_active={self.numbers[1]} or more active causes, and the data cut cannot tell "
            "how many: activity_ was kept at max_active + 1 expected causes in all, and may be too high. Raise "
            "max_active, or use keep=None."
        )

    def log_mass(self, model: Model, parameters: Parameters) -> Array:
        """Of all states with at most γ active causes."""
        return model.prior.log_mass(parameters.prior, self.numbers[1])

    def bytes_per_row(self, n_components: int, n_features: int, itemsize: int, linear: bool = False) -> int:
        """A few numbers for each state, feature and cause; times D where features are worked through at once."""
        states = ARRAYS_PER_STATE * (1 + self.numbers[0] + n_own_states(*self.numbers))
        features = 1 if linear or one_by_one() else n_features
        return itemsize * (states * features + 3 * n_features + 8 * n_components)

    def bytes_of_states(self, n_components: int, n_features: int, itemsize: int) -> int:
        """A few copies of the components."""
        return itemsize * 8 * n_components * (n_features + n_components)

    def weigh(self, model: Model, parameters: Parameters, block: Block, temperature: Array) -> Weighed:
        """Candidates and weights of states: the costly part of inference, done once for each row and iteration."""
        return self._weigh(model, parameters, block, temperature)[0]

    def _weigh(self, model: Model, parameters: Parameters, block: Block, temperature: Array) -> tuple[Weighed, Sums]:
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
        model: Model,
        parameters: Parameters,
        block: Block,
        temperature: Array,
        weighed: Weighed,
        threshold: Array | None = None,
    ) -> CandidateStates:
        """Expectations from what :meth:`weigh` found, without the rows whose free energy is below the threshold."""
        tree = sparse_states(*self.numbers)
        return CandidateStates(model, parameters, tree, block, temperature, weighed, threshold)

    def infer(self, model: Model, parameters: Parameters, block: Block, temperature: Array) -> Inference:
        """Both at once."""
        weighed, sums = self._weigh(model, parameters, block, temperature)
        tree = sparse_states(*self.numbers)
        return CandidateStates(model, parameters, tree, block, temperature, weighed, sums=sums)
