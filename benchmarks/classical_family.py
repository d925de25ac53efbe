"""Mixtures, K-means, factor analysis and independent components against scikit-learn and picard, in the same run."""

import warnings
from time import perf_counter

import numpy as np
from sklearn.cluster import KMeans as KMeansOfScikitLearn
from sklearn.decomposition import FactorAnalysis as FactorAnalysisOfScikitLearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from multicause import FactorAnalysis, IndependentComponents, KMeans, MixtureOfGaussians

N, D, H, ITERATIONS = 100_000, 50, 50, 10
START_SCALE = 1.5


def seconds(function, *, warm=False):
    """Best of three, after one call for warm-up where a program is compiled."""
    if warm:
        function()
    times = []
    for _ in range(3):
        started = perf_counter()
        result = function()
        times.append(perf_counter() - started)
    return min(times), result


def mixtures(X):
    """Some iterations from the same start."""
    precision = 1 / START_SCALE**2
    precisions = {"spherical": np.full(H, precision), "diagonal": np.full((H, D), precision)}
    for covariance, name in (("spherical", "spherical"), ("diagonal", "diag"), ("full", "full")):
        # Full covariances take scikit-learn seconds for each iteration.
        n_iter = 2 if covariance == "full" else ITERATIONS
        start = precisions.get(covariance, np.broadcast_to(precision * np.eye(D), (H, D, D)))
        ours = MixtureOfGaussians(
            H, covariance=covariance, init=X[:H], noise_scale=START_SCALE, max_iter=n_iter, tol=0, min_variance=1e-9
        )
        theirs = GaussianMixture(
            H,
            covariance_type=name,
            means_init=X[:H],
            weights_init=np.full(H, 1 / H),
            precisions_init=start,
            init_params="random_from_data",
            reg_covar=0,
            max_iter=n_iter,
            tol=0,
        )
        yield (
            f"mixture, {covariance}, {n_iter} iterations",
            ours,
            theirs,
            lambda a, b: a.score(X[:2000]) - b.score(X[:2000]),
        )


def report(name, ours, theirs, difference, X):
    our_seconds, model = seconds(lambda: ours.fit(X), warm=True)
    other, reference = seconds(lambda: theirs.fit(X))
    print(
        f"  {name:38} {our_seconds:8.2f} {other:8.2f} {other / our_seconds:7.1f}x {difference(model, reference):12.2e}"
    )


def main():
    random = np.random.RandomState(0)
    centres = random.normal(0, 2, (H, D))
    X = centres[random.randint(H, size=N)] + random.normal(size=(N, D))
    print(f"Classical family, N={N}, D={D}, H={H}, float64, one core, in seconds for a whole fit after warm-up:")
    print(f"  {'':38} {'ours':>8} {'sklearn':>8} {'ratio':>8} {'difference':>12}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, ours, theirs, difference in mixtures(X):
            report(name, ours, theirs, difference, X)
        ours = KMeans(H, init=X[:H], max_iter=2 * ITERATIONS, tol=0)
        theirs = KMeansOfScikitLearn(H, init=X[:H], n_init=1, max_iter=2 * ITERATIONS, tol=0)
        relative = lambda a, b: a.inertia_ / b.inertia_ - 1  # noqa: E731
        report(f"K-means, {2 * ITERATIONS} iterations", ours, theirs, relative, X)
        Y = random.normal(size=(N, 20)) @ random.normal(size=(20, D)) + random.normal(size=(N, D)) * random.uniform(
            0.3, 1.5, D
        )
        higher = lambda a, b: a.score(Y) - b.score(Y)  # noqa: E731
        report(
            "factor analysis, to convergence",
            FactorAnalysis(H, random_state=0),
            FactorAnalysisOfScikitLearn(H),
            higher,
            Y,
        )
    print(
        "  ratio: scikit-learn's time over ours (target: mixtures and factor analysis 1, K-means 0.5). difference: our"
    )
    print("  log-likelihood per row less theirs; for K-means the relative difference of the inertia.\n")
    independent()


def independent():
    """Time to the same gradient norm as picard."""
    try:
        from picard import picard
    except ImportError:
        print("  picard is not installed; its comparison is left out.\n")
        return
    print("Independent components to a relative gradient of 1e-6, float64, one core, in seconds:")
    print(f"  {'':38} {'ours':>8} {'picard':>8} {'ours/picard':>12}")
    for n_rows, n_sources in ((10_000, 10), (50_000, 30)):
        random = np.random.RandomState(0)
        X = random.laplace(size=(n_rows, n_sources)) @ random.normal(size=(n_sources, n_sources))
        model = IndependentComponents(random_state=0, tol=1e-6)
        our_seconds, _ = seconds(lambda model=model, X=X: model.fit(X), warm=True)
        other, _ = seconds(lambda X=X: picard(X.T, ortho=False, extended=False, tol=1e-6, random_state=0))
        print(
            f"  {f'{n_sources} sources, {n_rows} rows':38} {our_seconds:8.2f} {other:8.2f} {our_seconds / other:11.2f}x"
        )
    print("  target: at most 1.5.\n")


if __name__ == "__main__":
    import benchmarks.one_core  # noqa: F401

    main()
