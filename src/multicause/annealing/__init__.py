"""Annealing schedules: the temperature of each iteration of EM."""

from multicause.annealing.base import Annealing, Cooling, Schedule
from multicause.annealing.choice import choose_annealing
from multicause.annealing.conditional import ConditionalCooling, ConditionalSchedule
from multicause.annealing.linear import (
    PLAIN_ITERATIONS,
    ConstantTemperatures,
    LinearCooling,
    LinearSchedule,
    NoAnnealing,
)

__all__ = [
    "PLAIN_ITERATIONS",
    "Annealing",
    "ConditionalCooling",
    "ConditionalSchedule",
    "ConstantTemperatures",
    "Cooling",
    "LinearCooling",
    "LinearSchedule",
    "NoAnnealing",
    "Schedule",
    "choose_annealing",
]
