"""Principal axes of the data: one eigendecomposition of their covariance, or EM where values are missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from multicause.annealing import NoAnnealing
from multicause.arrays import key_from
from multicause.em.driver import run_loop
from multicause.em.loop import learn
from multicause.em.online import Online
from multicause.em.results import (
    FitResult,
    Progress,
    Watcher,
    batch_result,
    one_start,
    result_of_one,
    start_of,
)
from multicause.em.solver import FitProblem, Solver
from multicause.model import interned
from multicause.outcomes import Outcome
from multicause.posteriors import LinearGaussian
from multicause.records import Parameters

# Maximum number of EM iterations if values are missing, and the rise of the mean log-likelihood per row that ends it.
MOST_ITERATIONS = 2000
TOLERANCE = 1e-7


class PrincipalAxes(NamedTuple):
    """Principal components of a covariance matrix, the state of a loop with one step."""

    parameters: Parameters
    variances: np.ndarray  # (H,): variances of the data along the axes
    bound: float  # mean log-likelihood per row
    reported: bool = False  # whether callbacks have received it


@dataclass(frozen=True, kw_only=True)
class Eigendecomposition(Solver):
    """Maximum-likelihood axes, scales and noise of probabilistic PCA."""

    averages_batches: bool = False

    @property
    def result_names(self) -> tuple[str, ...]:
        """Return the name of the variances along the axes."""
        return ("explained_variance_",)

    def most_iterations(self, problem: FitProblem) -> int:
        """Return one for complete data, else the largest number of EM iterations."""
        return MOST_ITERATIONS if problem.model.missing else 1

    def learn(self, problem: FitProblem) -> FitResult:
        """Compute the axes and report them to callbacks as one iteration; if values are missing, learn by EM."""
        if problem.model.missing:
            return _learn_by_em(problem)

        def report(before: PrincipalAxes, after: PrincipalAxes) -> Iterator[Progress]:
            bound, results = np.array([after.bound]), {"explained_variance_": after.variances}
            yield Progress(0, np.ones(1), bound, one_start(after.parameters), results=results)

        axes = run_loop(
            PrincipalAxes,
            lambda: principal_axes(problem.record["covariance"], start_of(problem.starts)),
            lambda state: state._replace(reported=True),
            goes_on=lambda state: not state.reported,
            report=report,
            stop=lambda state: state,  # the solution is complete
            **problem.loop,
        )
        results = {"explained_variance_": axes.variances}
        nothing: Any = None
        return result_of_one(axes.parameters, nothing, [axes.bound], Outcome.CONVERGED, n_iter=1, results=results)

    def learn_batch(self, problem: FitProblem, before: Online | None) -> tuple[FitResult, Online | None]:
        """Compute the axes of all rows so far, whose covariance is in the record of the problem."""
        axes = principal_axes(problem.record["covariance"], start_of(problem.starts))
        batch = batch_result(
            axes.parameters,
            axes.bound,
            problem.n_batches + 1,
            finite=True,
            converged=True,
            results={"explained_variance_": axes.variances},
        )
        return batch._replace(outcome=Outcome.CONVERGED), None


def principal_axes(covariance: np.ndarray, start: Parameters) -> PrincipalAxes:
    """Return the principal components of a covariance (D, D), with the dtype and noise floor of ``start``."""
    n_components = len(start.components)
    dtype, floor = start.components.dtype, float(start.noise["floor"])
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values[::-1], 0)  # negative eigenvalues are rounding errors
    variances, rest, axes = values[:n_components], values[n_components:], vectors.T[::-1][:n_components]
    noise = max(float(rest.mean()) if len(rest) else 0.0, floor)
    scale = np.sqrt(np.maximum(variances - noise, floor))
    modelled = np.concatenate([scale**2 + noise, np.full(len(rest), noise)])
    bound = -0.5 * np.sum(np.log(2 * np.pi * modelled) + values / modelled)
    variance: Any = np.asarray(noise, dtype=dtype)
    parameters = Parameters(
        (axes * _signs(axes)[:, None]).astype(dtype),
        {"scale": scale.astype(dtype)},
        {**start.noise, "variance": variance},
    )
    return PrincipalAxes(parameters, variances.astype(dtype), float(bound))


def _learn_by_em(problem: FitProblem) -> FitResult:
    """Maximize the likelihood of the observed values by EM with noise.

    EM starts from the principal components of the covariances. It determines components only up to a rotation; axes and
    variances are computed from them at the end.
    """
    start = principal_axes(problem.record["covariance"], start_of(problem.starts)).parameters
    scale: Any = start.prior["scale"]
    start = start._replace(components=start.components * scale[:, None], prior={"scale": np.ones_like(scale)})
    model = interned(replace(problem.model, posterior=LinearGaussian()))

    def turned(progress: Progress) -> Progress:
        if progress.parameters is None:
            return progress
        parameters = rotated(start_of(progress.parameters))
        return progress._replace(parameters=one_start(parameters), results=_variances(parameters))

    result = learn(
        model,
        problem.data,
        one_start(start),
        annealing=NoAnnealing(),
        max_iter=MOST_ITERATIONS,
        tol=TOLERANCE,
        key=key_from(problem.random),
        watch=None if problem.watch is None else Watcher(problem.watch, turned),
        journal=problem.journal,
    )
    parameters = rotated(result.parameters)
    return result._replace(parameters=parameters, results=_variances(parameters))


def rotated(parameters: Parameters) -> Parameters:
    """Return parameters of the same density with sorted axes of length one, and causes of different scales."""
    components = np.asarray(parameters.components, dtype=float) * np.asarray(parameters.prior["scale"])[:, None]
    _, scale, axes = np.linalg.svd(components, full_matrices=False)
    dtype, least = parameters.components.dtype, np.sqrt(float(parameters.noise["floor"]))
    turned: Any = (axes * _signs(axes)[:, None]).astype(dtype)
    return parameters._replace(components=turned, prior={"scale": np.maximum(scale, least).astype(dtype)})


def _variances(parameters: Parameters) -> dict[str, np.ndarray]:
    variances = np.asarray(parameters.prior["scale"] ** 2 + parameters.noise["variance"])
    return {"explained_variance_": variances}


def _signs(axes: np.ndarray) -> np.ndarray:
    """Return the sign of the largest entry of each axis, which is made positive."""
    return np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
