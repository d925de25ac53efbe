"""Plan of an automatic search: models, data and settings that its phases share, and how many iterations they have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from multicause.arrays import Array
from multicause.em.results import Progress, Watcher
from multicause.engines.base import Data
from multicause.model import Model
from multicause.persistence.journal import Journal
from multicause.records import Parameters
from multicause.search.critical_temperature import TEMPERATURES
from multicause.search.phases import SHARE_DIVISOR, iterations_to_find
from multicause.search.search_models import SearchModels
from multicause.search.variants import MOST_VARIANTS

# Length of the annealing in iterations, and number of iterations below which it is skipped.
ITERATIONS = 60
LEAST_ITERATIONS = 10


@dataclass(frozen=True)
class SearchPlan:
    """Models, data and settings that the phases of one search share."""

    models: SearchModels
    data: Data
    search_data: Data
    starts: Parameters
    max_iter: int
    tol: float
    random: np.random.RandomState
    key: Array
    watch: Callable[[Progress], bool] | None
    journal: Journal

    @property
    def finishing(self) -> bool:
        """Return whether a last phase with the final model on all data is needed."""
        return self.models.search is not self.models.final or self.search_data is not self.data

    @property
    def repairs_again(self) -> bool:
        """Return whether the last phase has the rows of the search, but states that its repair did not have."""
        return self.search_data is self.data and self.models.search is not self.models.final

    @property
    def search_iterations(self) -> int:
        """Return the number of iterations until the causes must be found."""
        return iterations_to_find(self.max_iter, self.finishing)

    @property
    def annealing_iterations(self) -> int:
        """Return the length of the annealing."""
        return min(ITERATIONS, self.max_iter // SHARE_DIVISOR)

    @property
    def can_anneal(self) -> bool:
        """Return whether there are iterations for annealing, and components that it could separate."""
        enough = self.annealing_iterations >= LEAST_ITERATIONS
        return enough and self.starts.components.shape[1] > 1 and "components" in self.models.final.learn

    @property
    def places(self) -> int:
        """Return the number of starts of a program: all loops of the search share one for each posterior."""
        n_starts, n_components = self.starts.components.shape[:2]
        return max(n_starts, len(TEMPERATURES), min(n_components, MOST_VARIANTS))

    @property
    def loop(self) -> dict[str, Any]:
        """Return the arguments that all loops share."""
        return {"key": self.key, "journal": self.journal}

    def watch_phase(self, using: Model, phase: str) -> Callable[[Progress], bool] | None:
        """Return the watcher of a phase; statistics of another posterior are removed, as the model cannot use them."""
        if self.watch is None:
            return None
        changes: dict[str, Any] = {"phase": phase}
        if using.posterior != self.models.final.posterior:
            changes["statistics"] = None
        return Watcher(self.watch, lambda progress: progress._replace(**changes))
