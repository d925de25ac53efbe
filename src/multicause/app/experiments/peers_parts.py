"""Special cases in which two models are the same: combinations, and a model given by its log joint alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from multicause import LinearCauses, MaximalCauses, NoisyOrCauses, OwnCauses
from multicause.app.experiments.table import Line
from multicause.combinations import MaximumMagnitude
from multicause.datasets import make_bars

# Largest difference of log-likelihoods of a row that counts as none.
EQUAL = 1e-6


def special_cases() -> Iterator[Line]:
    """Yield differences between models that should be the same."""
    bars = make_bars(300, size=3, value=0.9, combination="noisy_or", noise="bernoulli", random_state=0)
    single = bars.data[bars.states.sum(axis=1) == 1]
    given = {"init": 0.8 * bars.causes + 0.05, "learn": (), "annealing": None, "max_iter": 1}
    rules = (NoisyOrCauses(6, **given), MaximalCauses(6, noise="bernoulli", **given))
    means = [model.fit(single).inverse_transform(np.eye(6)) for model in rules]
    # The leak, which the maximum does not have, makes means larger by up to its size.
    leak = 1e-3
    yield _line("noisy-or and maximum: difference of means of one active cause", *means, allowed=leak)
    bars = make_bars(300, size=3, noise="gaussian", random_state=0)
    given["init"] = bars.causes
    rules = (MaximalCauses(6, **given), MaximalCauses(6, combination=MaximumMagnitude(), **given))
    scores = [model.fit(bars.data).score_samples(bars.data) for model in rules]
    yield _line("maximum magnitude and maximum, components not negative: difference of log p", *scores)
    yield from _own_model()


def _own_model() -> Iterator[Line]:
    """Yield differences between linear causes and a model that is given their log joint."""
    bars = make_bars(300, size=3, noise="gaussian", random_state=0)
    exact = LinearCauses(6, init=0.8 * bars.causes + 0.5, annealing=None).fit(bars.data)
    odds = np.log(exact.activity_ / (1 - exact.activity_))
    start = {"components": exact.components_, "log_odds": odds, "log_sigma": 0.5 * np.log(exact.noise_variance_)}
    same = OwnCauses(_log_joint, lambda X, H, random: start, 6, max_iter=1, learning_rate=1e-12, random_state=0)
    scores = [model.score_samples(bars.data) for model in (exact, same.fit(bars.data))]
    yield _line("own model with the log joint of LinearCauses: difference of log p", *scores)
    far = {**start, "components": 0.8 * bars.causes + 0.5, "log_sigma": np.log(4.0)}
    learned = OwnCauses(_log_joint, lambda X, H, random: far, 6, max_iter=250, tol=0, batch_size=200, random_state=0)
    means = [np.asarray(model.score(bars.data)) for model in (exact, learned.fit(bars.data))]
    yield _line("own model, learned: difference of the mean log p of a row", *means, allowed=0.02)


def _log_joint(parameters: Any, states: Any, rows: Any) -> Any:
    """Return log p(s, y) of linear causes with Gaussian noise."""
    odds, sigma = parameters["log_odds"], jnp.exp(parameters["log_sigma"])
    errors = (rows[:, None] - states @ parameters["components"]) / sigma
    normalizer = rows.shape[1] * (jnp.log(sigma) + 0.5 * jnp.log(2 * jnp.pi))
    return states @ odds - jnp.logaddexp(0, odds).sum() - 0.5 * jnp.sum(errors**2, axis=-1) - normalizer


def _line(what: str, one: np.ndarray, other: np.ndarray, *, allowed: float = EQUAL) -> Line:
    difference = float(np.abs(one - other).max())
    return Line(what, f"<= {allowed:g}", f"{difference:.1g}", difference <= allowed)
