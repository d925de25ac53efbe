"""Factor analysis: Gaussian causes that add up, under noise that differs between dimensions.

TN10: P. Dayan and L. F. Abbott, Theoretical Neuroscience (MIT Press 2001), chapter 10.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from multicause.annealing import Annealing
from multicause.callbacks.adapter import History
from multicause.combinations import Combination, Sum
from multicause.em.initialization import InitialConditions
from multicause.em.results import FitResult, Progress
from multicause.engines import Data, Engine, Local
from multicause.estimators.causal import CausalEstimator
from multicause.estimators.summary import ModelSummary
from multicause.model import Model, Parameters, Statistics, interned
from multicause.noises import DiagonalGaussian, Noise
from multicause.posteriors import LinearGaussian
from multicause.preparation.moments import check_variation, condensed, covariance_of, expected_moments
from multicause.priors import Gaussian
from multicause.updates import LeastSquares
from multicause.wiring import check


class GaussianFactors(CausalEstimator):
    """Base class of factor analysis and principal components: Gaussian causes, their sum, and centred data."""

    _parameter_constraints: dict[str, list[Any]] = {
        name: CausalEstimator._parameter_constraints[name]
        for name in [
            "n_components",
            "learn",
            "noise_scale",
            "max_iter",
            "tol",
            "n_init",
            "init",
            "random_state",
            "verbose",
            "engine",
        ]
    }
    annealing = None
    repair = False
    activity = None
    noise_scale: float | None = None
    learn: tuple[str, ...] = ("components", "noise")
    mean_: np.ndarray
    _results: tuple[str, ...] = ("mean_",)
    _remembers_all = True

    def __init__(
        self,
        n_components: int = 2,
        *,
        max_iter: int = 2000,
        tol: float = 1e-7,
        n_init: int = 1,
        init: str | ArrayLike = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.engine = engine

    @property
    def projective_fields_(self) -> np.ndarray:
        """Projective fields G, the effect of each cause on the data: (n_components, n_features)."""
        return self.components_

    @property
    def receptive_fields_(self) -> np.ndarray:
        """Receptive fields W with v = W·(u − mean), by which each cause is inferred: (n_components, n_features)."""
        check_is_fitted(self)
        return self._recognition()[0]

    def _recognition(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the recognition weights W and the posterior covariance Ψ of TN10's appendix, in NumPy."""
        G, scale = np.asarray(self.components_, dtype=float), np.asarray(self.activity_, dtype=float)
        natural = G / np.asarray(self.noise_variance_, dtype=float)
        prior = 0 if self._model.posterior.limit else np.diag(scale**-2)
        covariance = np.linalg.inv(prior + natural @ G.T)
        return (covariance @ natural).astype(self.components_.dtype), covariance

    def _noise(self) -> Noise:
        raise NotImplementedError

    def _accepts_negative(self) -> bool:
        return True

    def _posterior(self) -> LinearGaussian:
        return LinearGaussian()

    def _combination(self, noise: Noise) -> Combination:
        return Sum()

    def _wire(self, data: Data) -> Model:
        if self.n_components > data.n_features:
            raise ValueError(
                f"{type(self).__name__} describes data by fewer causes than features: n_components="
                f"{self.n_components}, but X has {data.n_features} features. Lower n_components to at most "
                f"{data.n_features}."
            )
        self._check_learn()
        noise = self._noise()
        parts = (Gaussian(), self._combination(noise), noise, self._posterior(), LeastSquares())
        return interned(check(Model(*parts, learn=frozenset(self.learn)), type(self)))

    def _prepare(self, data: Data) -> dict[str, np.ndarray]:
        """Return weight, mean and covariance of the data in double precision, all that the model learns from."""
        check_variation(data)
        return self._moments(data)

    def _moments(self, data: Data) -> dict[str, np.ndarray]:
        weight, mean, covariance = covariance_of(data)
        self.mean_ = mean.astype(data.dtype)
        return {"weight": np.asarray(weight), "mean": mean, "covariance": covariance}

    @staticmethod
    def _prepared(record: dict[str, np.ndarray], rows: np.ndarray) -> np.ndarray:
        return rows - record["mean"].astype(rows.dtype)

    def _unprepared(self, rows: np.ndarray) -> np.ndarray:
        return rows + self._preparation["mean"].astype(rows.dtype)

    def _condensed(self, data: Data) -> Data:
        """Return rows with the same moments as the data, never more than twice the number of features.

        Moments do not determine the likelihood of rows with missing values, so such rows are returned unchanged.
        """
        if data.has_missing or data.n_rows <= 2 * data.n_features:
            return data
        return Local().load(*condensed(float(self._preparation["weight"]), self._preparation["covariance"], data.dtype))

    def _starts(self, initial: InitialConditions) -> Parameters:
        """Return the default starts, with an offset of the mean to be learned if values are missing."""
        starts = super()._starts(initial)
        if not initial.model.missing:
            return starts
        offset: Any = np.zeros((len(starts.components), initial.data.n_features), initial.data.dtype)
        return starts._replace(noise={**starts.noise, "offset": offset})

    def _finished(self, model: Model, parameters: Parameters, statistics: Statistics | None = None) -> Parameters:
        """Move the offset out of the parameters into the mean that is subtracted from rows."""
        if "offset" not in parameters.noise:
            return parameters
        noise = dict(parameters.noise)
        mean = self._preparation["mean"] + np.asarray(noise.pop("offset"), dtype=float)
        self._preparation = {**self._preparation, "mean": mean}
        self.mean_ = mean.astype(parameters.components.dtype)
        return parameters._replace(noise=noise)

    def _keep(self, model: Model, parameters: Parameters) -> None:
        """Store a model of complete rows: later batches are learned from moments, which have no missing values."""
        super()._keep(interned(replace(model, missing=False)), parameters)

    def _keep_history(self, result: FitResult, annealing: Annealing) -> None:
        """Store the history, but no statistics of rows with missing values, to which batches could not be added."""
        super()._keep_history(result, annealing)
        if "offset_data" in result.statistics.noise:
            self._online = None

    def _so_far(self, model: Model, progress: Progress, seen: History) -> dict[str, Any]:
        """Return the fitted attributes during learning, for a model of complete rows and without online statistics."""
        attributes = super()._so_far(model, progress, seen)
        if model.missing:
            attributes |= {"_model": interned(replace(model, missing=False)), "_online": None}
        return attributes

    def _next_batch(self, data: Data, first: bool) -> Data:
        """Return rows with the moments of all batches so far, so that no batch is forgotten.

        Moments of a batch with missing values are their expectations under the parameters learned so far.
        """
        if first:
            self._preparation = self._prepare(data)
            if data.has_missing:
                return self._from_moments(data.dtype)
            return self._condensed(data.transformed(self._preparer()))
        moments = self._expected_moments(data) if data.has_missing else self._moments(data)
        self._preparation = merged(self._preparation, moments)
        self.mean_ = self._preparation["mean"].astype(data.dtype)
        return self._from_moments(data.dtype)

    def _from_moments(self, dtype: np.dtype) -> Data:
        return Local().load(*condensed(float(self._preparation["weight"]), self._preparation["covariance"], dtype))

    def _expected_moments(self, data: Data) -> dict[str, np.ndarray]:
        """Return weight, mean and covariance of rows, with their expectation over missing given observed values.

        Given the observed values, the missing ones are normally distributed.
        """
        G, scale = np.asarray(self.components_, dtype=float), np.asarray(self.activity_, dtype=float)
        noise = np.asarray(self.noise_variance_, dtype=float) * np.ones(data.n_features)
        covariance = (G.T * scale**2) @ G + np.diag(noise)
        weight, mean, found = expected_moments(data, self._preparation["mean"], covariance)
        return {"weight": np.asarray(weight), "mean": mean, "covariance": found}


def merged(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return weight, mean and covariance of the union of two sets of rows."""
    weight = one["weight"] + other["weight"]
    share, apart = other["weight"] / weight, other["mean"] - one["mean"]
    between = share * (1 - share) * np.outer(apart, apart)
    within = (1 - share) * one["covariance"] + share * other["covariance"]
    return {"weight": np.asarray(weight), "mean": one["mean"] + share * apart, "covariance": within + between}


class FactorAnalysis(GaussianFactors):
    """Factor analysis: a few independent causes that explain how dimensions vary together.

    TN10 eq. 10.18–10.21 and its appendix, with the data's mean subtracted::

        p[v] = N(v; 0, 1)
        p[u | v] = N(u; G·v, Σ),  Σ = diag(Σ_1 … Σ_D)
        p[v | u] = N(v; W·u, Ψ),  Ψ = (1 + Gᵀ Σ⁻¹ G)⁻¹,  W = Ψ Gᵀ Σ⁻¹

    Each dimension has its own noise variance, so that a noisy sensor does not count as structure (figure 10.3). EM
    never lowers the log-likelihood. It only needs the covariance of the data, which is computed once. Components are
    determined up to a rotation among causes.

    Parameters
    ----------
    n_components : int, default=2
        Number H of causes, at most the number of features.
    learn : tuple of str, default=("components", "noise")
        Which of the two are learned; the other keeps its initial value.
    noise_scale : float, optional
        Initial (or fixed) standard deviation of the noise; by default half that of the data.
    max_iter : int, default=2000
        Maximum number of EM iterations.
    tol : float, default=1e-7
        Learning has converged when the mean log-likelihood per row rises by less per iteration.
    n_init, init, random_state, verbose, engine
        As for :class:`multicause.LinearCauses`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        G, transposed: the effect of each cause on the data (its projective field).
    receptive_fields_ : ndarray of shape (n_components, n_features)
        Recognition weights W.
    noise_variance_ : ndarray of shape (n_features,)
        Noise variances, the diagonal of Σ.
    mean_ : ndarray of shape (n_features,)
        Mean of the data; if values are missing, its maximum-likelihood estimate, learned with the other parameters.
    activity_ : ndarray of shape (n_components,)
        Standard deviation of each cause under the prior, one.
    lower_bound_, lower_bounds_, n_iter_, converged_, outcome_
        As for :class:`multicause.MaximalCauses`; the bound is the log-likelihood.

    Examples
    --------
    >>> import numpy as np
    >>> from multicause import FactorAnalysis
    >>> random = np.random.RandomState(0)
    >>> cause = random.normal(size=500)
    >>> X = cause[:, None] + random.normal(size=(500, 3)) * [0.5, 0.5, 3]
    >>> found = FactorAnalysis(1, random_state=0).fit_transform(X)[:, 0]
    >>> bool(abs(np.corrcoef(found, cause)[0, 1]) > 0.9)
    True
    """

    summary = ModelSummary(
        "p[v] = N(v; 0, 1); p[u|v] = N(u; G·v, diag Σ)",
        "p[v|u] = N(v; W·u, Ψ); Ψ = (1 + GᵀΣ⁻¹G)⁻¹; W = ΨGᵀΣ⁻¹",
        "G = C·Wᵀ(W·C·Wᵀ + Ψ)⁻¹; Σ = diag(GΨGᵀ + (1 − GW)·C·(1 − GW)ᵀ); C = ⟨uu⟩",
    )

    def __init__(
        self,
        n_components: int = 2,
        *,
        learn: tuple[str, ...] = ("components", "noise"),
        noise_scale: float | None = None,
        max_iter: int = 2000,
        tol: float = 1e-7,
        n_init: int = 1,
        init: str | ArrayLike = "random",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        engine: Engine | None = None,
    ) -> None:
        super().__init__(
            n_components,
            max_iter=max_iter,
            tol=tol,
            n_init=n_init,
            init=init,
            random_state=random_state,
            verbose=verbose,
            engine=engine,
        )
        self.learn = learn
        self.noise_scale = noise_scale

    def _noise(self) -> Noise:
        return DiagonalGaussian()
