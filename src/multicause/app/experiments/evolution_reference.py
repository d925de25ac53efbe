"""Evolutionary expectation maximization as published, in NumPy: the states of Guiraud, Drefs & Lücke (GECCO 2018).

Each row of data keeps S binary states. In an iteration, parents are drawn in proportion to their fitness, which is the
log joint above twice the lowest one; each child is a copy of a parent in which one random bit is flipped; and the S
best different states survive. The model is binary sparse coding: sums of causes under Gaussian noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Fitness of places without a state, from which no parent should be drawn.
TINY = 1e-9


class SparseCode(NamedTuple):
    """Parameters of binary sparse coding."""

    components: np.ndarray  # (H, D)
    activity: float
    noise_scale: float

    def log_joint(self, states: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return log p(s, y) of states (N, K, H) of rows (N, D): (N, K)."""
        errors = X[:, None] - states @ self.components
        variance = self.noise_scale**2
        active, H = states.sum(axis=2), len(self.components)
        prior = active * np.log(self.activity) + (H - active) * np.log1p(-self.activity)
        return prior - 0.5 * (errors**2).sum(axis=2) / variance - 0.5 * X.shape[1] * np.log(2 * np.pi * variance)


def evolved_bounds(
    model: SparseCode, X: np.ndarray, n_states: int, n_parents: int, n_children: int, n_iter: int, seed: int
) -> list[float]:
    """Return the bound log Σ_s p(s, y) per row after each iteration; each of the parents has ``n_children``."""
    random, N, H = np.random.RandomState(seed), len(X), len(model.components)
    first = _first_states(random, N, n_states, H)
    states, scores = _survivors(first, model.log_joint(first, X), n_states)
    bounds, rows = [], np.arange(N)[:, None]
    for _ in range(n_iter):
        # The largest of such keys are a sample without replacement, with probabilities in proportion to the fitness.
        lowest = np.where(np.isfinite(scores), scores, 0).min(axis=1, keepdims=True)
        fitness = np.where(np.isfinite(scores), scores - 2 * lowest, 0) + TINY
        keys = np.log(random.uniform(size=scores.shape)) / fitness
        parents = np.argsort(-keys, axis=1)[:, :n_parents]
        children = np.repeat(states[rows, parents], n_children, axis=1)
        flipped = random.randint(H, size=children.shape[:2])
        children[rows, np.arange(children.shape[1]), flipped] ^= True
        states, scores = _survivors(
            np.concatenate([states, children], axis=1),
            np.concatenate([scores, model.log_joint(children, X)], axis=1),
            n_states,
        )
        bounds.append(float(np.mean(np.logaddexp.reduce(scores, axis=1))))
    return bounds


def _first_states(random: np.random.RandomState, N: int, n_states: int, H: int) -> np.ndarray:
    """Return states (N, S, H): the empty one, single causes in a random order, then pairs of neighbours in it."""
    order = np.argsort(random.uniform(size=(N, H)), axis=1)
    states = np.zeros((N, n_states, H), dtype=bool)
    rows = np.arange(N)
    for place in range(1, n_states):
        states[rows, place, order[:, (place - 1) % H]] = True
        if place > H:
            states[rows, place, order[:, place % H]] = True
    return states


def _survivors(states: np.ndarray, scores: np.ndarray, n_states: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the best different states of each row, and their scores; those of repetitions are −inf."""
    packed = np.packbits(states, axis=2)
    names = packed.view([("", packed.dtype)] * packed.shape[2])[..., 0]
    scores = scores.copy()
    for own_names, own_scores in zip(names, scores, strict=True):
        first = np.unique(own_names, return_index=True)[1]
        again = np.ones(len(own_scores), dtype=bool)
        again[first] = False
        own_scores[again] = -np.inf
    best = np.argsort(-scores, axis=1)[:, :n_states]
    rows = np.arange(len(scores))[:, None]
    return states[rows, best], scores[rows, best]
