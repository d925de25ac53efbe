"""Energies of energy-based models: sums over hidden units that are functions of the observation (EBM01 eq. 1, 2)."""

from multicause.energies.base import Expert
from multicause.energies.checks import check_expert
from multicause.energies.function import FunctionExpert
from multicause.energies.logistic import Logistic
from multicause.energies.network import NONLINEARITIES, Energy, EnergyParameters, EnergyTarget, Layer
from multicause.energies.student import Student

NAMES: dict[str, type] = {"logistic": Logistic, "student": Student}

__all__ = [
    "NAMES",
    "NONLINEARITIES",
    "Energy",
    "EnergyParameters",
    "EnergyTarget",
    "Expert",
    "FunctionExpert",
    "Layer",
    "Logistic",
    "Student",
    "check_expert",
]
