"""Learning of an energy-based model from data or from one batch of a stream, to the attributes of the fitted model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from multicause.callbacks.adapter import FitSession, History
from multicause.engines import Data
from multicause.estimators import energy_density as density
from multicause.estimators.advice import outcome_of_batch
from multicause.outcomes import Outcome
from multicause.solvers.contrastive_divergence import key_data, with_chains
from multicause.solvers.energy_batches import mini_batches
from multicause.solvers.energy_loop import EnergyFitResult, RoundProgress, learn, round_length
from multicause.solvers.energy_problem import EnergyProblem, energy_problem, rates_of
from multicause.solvers.presentation import repetitions

Settings = dict[str, Any]
#: Attributes that have one entry for each round, or for each batch of a stream.
HISTORY = ("lower_bounds_", "contrasts_", "acceptance_rates_")


def begin(
    settings: Settings, data: Data, rows: np.ndarray, memory_budget: str | int, random: np.random.RandomState
) -> EnergyProblem:
    """Return the problem of a fit to some data, of which mini-batches are drawn from ``rows``."""
    if rows.min() == rows.max():
        raise ValueError(
            f"All values of X are equal ({rows.flat[0]:.6g}), so there is nothing to learn. "
            "X needs at least two different values."
        )
    return energy_problem(settings, data, _n_chains(settings, rows), memory_budget, random)


def learn_from_rows(
    settings: Settings,
    problem: EnergyProblem,
    rows: np.ndarray,
    weights: np.ndarray,
    session: FitSession,
    *,
    y: Any = None,
    weighted: bool = False,
) -> dict[str, Any]:
    """Learn until ``max_iter``, and return the fitted attributes but ``lower_bound_``."""
    random, max_iter, log_volume = session.random, settings["max_iter"], problem.whitening.log_volume
    length = round_length(max_iter, _n_chains(settings, rows) * rows.shape[1] * rows.itemsize)
    session.start_reporting(
        rows,
        y,
        weights if weighted else None,
        partial(_so_far, problem),
        bound=lambda progress: float(progress.report.bound) + log_volume,
        summarize=partial(_summary, log_volume),
        n_tasks=-(-max_iter // length),
    )
    result = learn(
        problem.method,
        problem.updates,
        mini_batches(rows, weights, settings["batch_size"], random),
        problem.whitening.cast(rows.dtype),
        rates_of(settings),
        n_updates=max_iter,
        length=length,
        tol=settings["tol"],
        seed=key_data(random),
        watch=session,
        journal=session.journal,
    )
    return _attributes(problem, result, result.outcome)


def normalize(
    settings: Settings, problem: EnergyProblem, data: Data, memory_budget: str | int, random: np.random.RandomState
) -> tuple[dict[str, Any], str]:
    """Return log Z and the mean log density of all rows, and why there is none although it was wanted.

    If Z is not known, it is estimated with ``estimate_partition=True``.
    """
    wanted = settings["estimate_partition"]
    reason = density.why_improper(problem) if wanted else ""
    found = density.known_log_partition(problem.method.energy, problem.updates.parameters)
    if found is None and wanted and not reason:
        chains = density.CHAINS, density.TEMPERATURES
        found = density.estimate_log_partition(problem, *chains, memory_budget, random)
    mean = np.nan
    if found is not None:
        mean = problem.whitening.log_volume - found.value - density.mean_energy(problem, data)
    return {"log_partition_": found, "lower_bound_": float(mean)}, reason


def learn_from_batch(
    settings: Settings,
    problem: EnergyProblem,
    rows: np.ndarray,
    weights: np.ndarray,
    random: np.random.RandomState,
    before: Mapping[str, np.ndarray],
) -> dict[str, Any]:
    """Make the updates of one batch of a stream, and return the fitted attributes.

    ``before`` are the attributes of HISTORY so far, to each of which the mean of the batch is appended.
    """
    batch_size, n_shown = settings["batch_size"], int(np.rint(repetitions(weights).sum()))
    result = learn(
        problem.method,
        with_chains(problem.updates, _n_chains(settings, rows))._replace(finite=np.ones((), bool)),
        mini_batches(rows, weights, batch_size, random),
        problem.whitening.cast(rows.dtype),
        rates_of(settings),
        n_updates=1 if batch_size is None else -(-n_shown // batch_size),
        length=1,  # one program for batches of all sizes
        tol=settings["tol"],
        seed=key_data(random),
        end=1.0,
    )
    attributes = _attributes(problem, result, outcome_of_batch(result.outcome is not Outcome.NON_FINITE))
    means = {name: attributes[name].mean() for name in HISTORY}
    history = {name: np.append(before.get(name, []), mean) for name, mean in means.items()}
    return {**attributes, **history, "lower_bound_": float(means["lower_bounds_"]), "converged_": False}


def warning_of_rejections(before: EnergyProblem, after: EnergyProblem, *, single_precision: bool) -> str:
    """Return a warning of proposals rejected in the meantime for a non-finite energy; an empty text if none was."""
    n_rejected = int(after.updates.n_rejected) - int(before.updates.n_rejected)
    if not n_rejected:
        return ""
    return (
        f"{n_rejected} proposals of the sampler had an energy that is not finite and were rejected. (1) Check that "
        "the expert is finite everywhere; (2) lower the sampler's step_size"
        + ("; (3) use float64 data." if single_precision else ".")
    )


def _n_chains(settings: Settings, rows: np.ndarray) -> int:
    """Return the number of rows of one update, each of which has a chain."""
    return len(rows) if settings["batch_size"] is None else settings["batch_size"]


def _attributes(problem: EnergyProblem, result: EnergyFitResult, outcome: Outcome) -> dict[str, Any]:
    return {
        **density.fitted_attributes(problem, result.updates),
        **_history(problem, result.reports),
        "drift_": result.drift,
        "outcome_": outcome.value,
        "converged_": outcome is Outcome.CONVERGED,
    }


def _history(problem: EnergyProblem, reports: Any) -> dict[str, Any]:
    """Return the attributes of HISTORY."""
    bounds, contrasts, acceptances, _ = reports
    return dict(zip(HISTORY, (bounds + problem.whitening.log_volume, contrasts, acceptances), strict=True))


def _so_far(problem: EnergyProblem, progress: RoundProgress, seen: History) -> dict[str, Any]:
    """Return the attributes of a model with the parameters learned so far."""
    return {
        **density.fitted_attributes(problem, progress.updates),
        **_history(problem, progress.reports.T),
        "lower_bound_": seen.bounds[-1],
        "converged_": False,
        "outcome_": Outcome.STOPPED.value,
    }


def _summary(log_volume: float, progress: RoundProgress) -> str:
    """Return the line of a round for the terminal."""
    report = progress.report
    bound = float(report.bound) + log_volume
    known = f"  log density {bound:.6f}" if np.isfinite(bound) else ""
    return (
        f"update {progress.n_updates:6d}  contrast {float(report.contrast):9.4f}  "
        f"acceptance {float(report.acceptance):5.3f}{known}"
    )
