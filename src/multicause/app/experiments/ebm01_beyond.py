"""Energies beyond ICA: more filters than dimensions, and a second layer (EBM01 §7)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from multicause import EnergyComponents
from multicause.app.experiments.table import Line
from multicause.samplers import Hamiltonian


def overcomplete(trials: int = 10, *, setting: str = "default", jobs: int = 1) -> list[Line]:
    """Fit sixteen filters to data of a complete model with eight Student-t sources."""
    worst = []
    for seed in range(trials):
        random = np.random.RandomState(seed)
        A = random.normal(size=(8, 8))
        X = (random.standard_t(3, size=(20_000, 8)) @ A.T).astype(np.float32)
        model = _fit(EnergyComponents(16, expert="student", learning_rate=0.02, random_state=seed), X)
        unwhiten = model.mixing_ @ model.whitened_components_  # as the filters span all dimensions
        true = _normed(np.linalg.inv(A) @ unwhiten)
        worst.append(np.abs(true @ _normed(model.whitened_components_).T).max(axis=1).min())
    found = f"{np.min(worst):.3f} in {trials} runs"
    return [Line("smallest |cos| between a true filter and the best of 16", "> 0.95", found, min(worst) > 0.95)]


def layers(trials: int = 3, *, setting: str = "default", jobs: int = 1) -> list[Line]:
    """Compare held-out log densities of one and two layers on pairs of equal amplitude and independent signs.

    In each pair one of x₁ ± x₂ is nearly zero while the other is large. A complete one-layer energy is a product of
    densities in some basis, whose support would be a product too, not two lines; so it cannot be correct.
    """
    lines = []
    for seed in range(trials):
        random = np.random.RandomState(seed)
        X, held_out = amplitude_coupled(20_000, random), amplitude_coupled(5000, random)
        common: dict[str, Any] = {"learning_rate": 0.02, "random_state": seed, "sampler": Hamiltonian(10)}
        two = _fit(EnergyComponents(4, expert="student", layers=(4,), nonlinearity="log_square", **common), X)
        two_error = two.estimate_log_partition(random_state=seed).standard_error
        others = {
            "one complete layer, student": EnergyComponents(4, expert="student", **common),
            "one complete layer, logistic": EnergyComponents(4, **common),
            "one layer of as many units": EnergyComponents(8, expert="student", **common),
        }
        for name, other in others.items():
            _fit(other, X)
            error = other.estimate_log_partition(random_state=seed).standard_error
            gain = two.score_samples(held_out) - other.score_samples(held_out)
            error = float(np.linalg.norm([gain.std() / np.sqrt(len(gain)), two_error, error]))
            found = f"{gain.mean():.2f} ± {error:.2f}"
            lines.append(Line(f"run {seed}: gain over {name}", "> 2 s.e.", found, bool(gain.mean() > 2 * error)))
    return lines


def amplitude_coupled(n: int, random: np.random.RandomState) -> np.ndarray:
    """Generate two pairs of variables with equal amplitudes within 10 % and independent signs: (n, 4)."""
    pairs = []
    for _ in range(2):
        signs = random.choice([-1, 1], size=(n, 2))
        pairs.append(signs * np.exp(0.5 * random.normal(size=(n, 1)) + 0.1 * random.normal(size=(n, 2))))
    return np.hstack(pairs).astype(np.float32)


def _fit(model: EnergyComponents, X: np.ndarray) -> EnergyComponents:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


def _normed(filters: np.ndarray) -> np.ndarray:
    return filters / np.linalg.norm(filters, axis=1, keepdims=True)
