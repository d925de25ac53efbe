"""Langevin dynamics: Hamiltonian dynamics with a new momentum after every leapfrog step."""

from __future__ import annotations

from multicause.arrays import Array
from multicause.samplers.base import Chain, MarkovChain, Target
from multicause.samplers.hamiltonian import trajectories


class CorrectedLangevin(MarkovChain):
    """Metropolis-adjusted Langevin dynamics: proposals N(z − ½ε² ∂E/∂z, ε²), accepted or rejected.

    Parameters
    ----------
    acceptance : float, default=0.5
        Target acceptance rate, to which the step size ε is adapted.
    step_size : float, default=0.1
        Initial step size ε.
    """

    def __init__(self, *, acceptance: float = 0.5, step_size: float = 0.1) -> None:
        self.acceptance = acceptance
        self.step_size = step_size

    def build(self, target: Target, step_size: Array) -> Chain:
        """Return the chain that runs one leapfrog step with rejection."""
        return trajectories(target, step_size, 1, corrected=True)


class Langevin(MarkovChain):
    """Langevin dynamics without rejection: every proposal of finite energy is accepted; exact only as ε → 0.

    Parameters
    ----------
    acceptance : float, default=0.95
        The step size is adapted so that a corrected chain would have this acceptance rate (EBM01 §4).
    step_size : float, default=0.1
        Initial step size ε.
    """

    def __init__(self, *, acceptance: float = 0.95, step_size: float = 0.1) -> None:
        self.acceptance = acceptance
        self.step_size = step_size

    def build(self, target: Target, step_size: Array) -> Chain:
        """Return the chain that runs one leapfrog step without rejection."""
        return trajectories(target, step_size, 1, corrected=False)
