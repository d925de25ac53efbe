"""SparseCoding against scikit-learn's MiniBatchDictionaryLearning on patches of photographs, in one run.

``python -m benchmarks.sparse_coding`` learns 100 components of 10,000 patches of 10 × 10 pixels without their means, in
single precision, on all cores. Photographs are those of the folder that MULTICAUSE_DATA names, or scikit-image's.

Both dictionaries are measured in the same way: components have length one, held-out patches are encoded by
scikit-learn's lasso, with a penalty for each dictionary such that the same share of coefficients is not zero, and R² is
the share of the variance that the reconstruction explains. The share of coefficients that are not zero is the
sparseness of codes under the Laplace prior, whose most probable causes are the solution of a lasso; unlike a mean of
absolute values it does not depend on the lengths of components.
"""

import warnings
from time import perf_counter, process_time

import numpy as np
from sklearn.decomposition import MiniBatchDictionaryLearning, sparse_encode
from sklearn.exceptions import ConvergenceWarning

from multicause import SparseCoding
from multicause.datasets.images import load_photographs
from multicause.datasets.patches import make_patches

N, HELD_OUT, SIDE, COMPONENTS = 10_000, 2_000, 10, 100
PASSES = 8  # after which SparseCoding is about as good as scikit-learn by default
SHARE = 0.2  # of coefficients that are not zero
SIGMA, SCALE = 0.3, 0.5  # noise and prior of SparseCoding


def patches():
    """Return patches to learn from and others, without their means, with unit variance over all."""
    photographs = load_photographs()
    n_each = -(-(N + HELD_OUT) // len(photographs))
    patches = [make_patches(image, n_each, shape=(SIDE, SIDE), random_state=0).data for image in photographs]
    rows = np.random.RandomState(0).permutation(np.concatenate(patches))[: N + HELD_OUT]
    rows -= rows.mean(axis=1, keepdims=True)
    rows = (rows / rows.std()).astype(np.float32)
    return rows[:N], rows[N:]


def quality(components, X):
    """Return R² of codes of which ``SHARE`` is not zero, and that share."""
    atoms = (components / np.linalg.norm(components, axis=1, keepdims=True)).astype(np.float64)
    low, high = 1e-4, 10.0
    for _ in range(12):
        penalty = np.sqrt(low * high)
        codes = sparse_encode(X.astype(np.float64), atoms, algorithm="lasso_cd", alpha=penalty, max_iter=1000)
        share = np.mean(codes != 0)
        low, high = (penalty, high) if share > SHARE else (low, penalty)
    return 1 - np.sum((X - codes @ atoms) ** 2) / np.sum(X**2), share


def compare(name, model, X, held_out):
    """Fit a model and print what it took and what it found."""
    started, worked = perf_counter(), process_time()
    model.fit(X)
    seconds, work = perf_counter() - started, process_time() - worked
    explained, share = quality(model.components_, held_out)
    print(
        f"  {name:39} {seconds:6.1f} s ({work:6.1f} s of all cores), R² {explained:.4f} at {share:.3f} not zero, "
        f"{model.n_iter_} passes",
        flush=True,
    )
    return model


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, held_out = patches()
    print(f"{COMPONENTS} components of {N:,} patches of {SIDE} × {SIDE}, held-out R² of {HELD_OUT:,} others:")
    for name, settings in (("cold", {"max_iter": 1}), (f"{PASSES} passes", {"max_iter": PASSES}), ("default", {})):
        ours = SparseCoding(COMPONENTS, random_state=0, **settings)
        compare(f"SparseCoding, {name}", ours, X, held_out)
    # The penalty that the prior means for components of length one.
    penalty = SIGMA**2 / SCALE / np.mean(np.linalg.norm(ours.components_, axis=1))
    common = {"alpha": penalty, "batch_size": 200, "fit_algorithm": "cd", "random_state": 0}
    longer = {"max_iter": PASSES, "tol": 0, "max_no_improvement": None}
    for name, settings in (("default", {}), (f"{PASSES} passes", longer)):
        other = MiniBatchDictionaryLearning(COMPONENTS, **common, **settings)
        compare(f"MiniBatchDictionaryLearning, {name}", other, X, held_out)


if __name__ == "__main__":
    main()
