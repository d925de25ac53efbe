"""Interface of models that are learned by gradients: the log joint, and updates that are known in closed form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from multicause.arrays import Array

#: ``log_joint(parameters, states (n, S, H), rows (n, D))`` returns log p(s, y): (n, S).
LogJoint = Callable[[Any, Array, Array], Array]


class JointModel(ABC):
    """Model of binary causes whose log joint is known. Objects are hashable: equal ones share compiled programs."""

    @abstractmethod
    def log_joint(self, parameters: Any, states: Array, rows: Array) -> Array:
        """Return log p(s, y) of states (n, S, H), zeros and ones, in rows (n, D): (n, S)."""

    def expectations(self, parameters: Any, states: Array, probabilities: Array, rows: Array, shown: Array) -> Any:
        """Return the sums over rows that :meth:`solve` needs; ``shown`` (n,) is zero for rows that do not count."""
        return ()

    def solve(self, parameters: Any, sums: Any) -> Any:
        """Return the parameters after a pass over the data, with those replaced that are known in closed form."""
        return parameters


@dataclass(frozen=True)
class FunctionModel(JointModel):
    """Model of a user, given by a function; all parameters follow its gradient."""

    function: LogJoint

    def log_joint(self, parameters: Any, states: Array, rows: Array) -> Array:
        """Return the log joint of states, as the function of the user computes it."""
        return self.function(parameters, states, rows)
