"""Samplers of energy-based models: Markov chains that leave exp(−E) invariant, and two alternatives in closed form."""

from multicause.samplers.base import Chain, Info, MarkovChain, ModelExpectation, Sampler, State, run_chain
from multicause.samplers.closed_form import Equilibrium, ExactGradient
from multicause.samplers.hamiltonian import Hamiltonian
from multicause.samplers.langevin import CorrectedLangevin, Langevin
from multicause.samplers.metropolis import Metropolis

NAMES: dict[str, type] = {
    "hamiltonian": Hamiltonian,
    "corrected_langevin": CorrectedLangevin,
    "langevin": Langevin,
    "metropolis": Metropolis,
    "equilibrium": Equilibrium,
    "exact": ExactGradient,
}

__all__ = [
    "NAMES",
    "Chain",
    "CorrectedLangevin",
    "Equilibrium",
    "ExactGradient",
    "Hamiltonian",
    "Info",
    "Langevin",
    "MarkovChain",
    "Metropolis",
    "ModelExpectation",
    "Sampler",
    "State",
    "run_chain",
]
