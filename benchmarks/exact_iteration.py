"""One EM iteration of MCA_ex on the standard bars against the same statistics in NumPy, on one core."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning

from benchmarks.steps import maximize
from multicause import MaximalCauses
from multicause.app.experiments.timing import milliseconds
from multicause.arrays import double_precision
from multicause.datasets import make_bars
from multicause.em.e_step import expect
from multicause.records import Block

CHUNK = 100
TEMPERATURE = 1.5


def numpy_iteration(Y, W, activity, states, temperature, floor):
    """E-step (MCA08 eq. 12, tempered), credits (ET10 eq. 36) and M-step (eq. 9 and 11), rows in chunks."""
    dtype, rho = Y.dtype, temperature / (temperature - 1)
    active = states[:, :, None] * W  # (S, H, D)
    means = np.maximum(active.max(axis=1), floor)
    with np.errstate(divide="ignore", invalid="ignore"):
        norms = (active ** dtype.type(rho)).sum(axis=1, keepdims=True)
        credit = active ** dtype.type(rho - 1) * norms ** dtype.type((1 - rho) / rho)
    credit[0] = 0  # 0^(1/ρ − 1) in the state without any cause
    log_prior = states @ np.log(activity / (1 - activity)) + np.log1p(-activity).sum()
    natural, constant = np.log(means).T, log_prior - means.sum(axis=1)
    credited_data, credits, total, bound = 0.0, 0.0, 0.0, 0.0
    for start in range(0, len(Y), CHUNK):
        y = Y[start : start + CHUNK]
        log_joint = y @ natural + constant
        scaled = log_joint / dtype.type(temperature)
        q = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        credited_data = credited_data + np.einsum("shd,sd->hd", credit, q.T @ y)
        weights = q.sum(axis=0)
        credits = credits + np.tensordot(weights, credit, axes=1)
        total = total + weights @ states
        bound += float((q * log_joint).sum() - (q * np.log(q + 1e-30)).sum() - gammaln(y + 1).sum())
    return credited_data / np.maximum(credits, 1e-30), total / len(Y), bound


def compare(dtype, n_components=10, n_rows=500):
    """Times of both, and the largest difference of the new components."""
    bars = make_bars(n_rows, noise="poisson", random_state=0)
    model = MaximalCauses(n_components, noise="poisson", random_state=0, max_iter=1, tol=0.0, annealing=None)
    X = bars.data.astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    W, activity = model.components_, model.activity_
    parts, _, parameters = model.fitted_model_
    states = ((np.arange(2**n_components)[:, None] >> np.arange(n_components)) & 1).astype(dtype)
    with double_precision():
        rows = jnp.asarray(X)
        block = Block(rows, jnp.ones(n_rows, dtype), parts.noise.summarize(rows))
        parameters = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], parameters)

        temperature = jnp.full(1, TEMPERATURE)

        def iteration():
            sums = expect(parts, block, parameters, temperature)
            return jax.block_until_ready(maximize(parts, sums, parameters))

        ours = milliseconds(iteration, repeats=100)
        new = np.asarray(iteration().components[0])
        two_products = jax.jit(lambda Y, W: (W @ Y.T) @ Y)
        means = jnp.asarray(np.random.RandomState(0).uniform(size=(len(states), X.shape[1])), dtype)
        products = milliseconds(lambda: jax.block_until_ready(two_products(block.rows, means)))
    reference = milliseconds(lambda: numpy_iteration(X, W, activity, states, TEMPERATURE, 1e-6), repeats=10)
    difference = np.abs(new - numpy_iteration(X, W, activity, states, TEMPERATURE, 1e-6)[0]).max()
    return ours, reference, products, difference


def main():
    print("One EM iteration of MCA_ex, N=500, H=10 (1024 states), D=25, one core, in milliseconds:")
    print(f"  {'':8} {'ours':>8} {'NumPy':>8} {'ratio':>7} {'products':>9} {'ours/products':>14} {'difference':>11}")
    for dtype in (np.float32, np.float64):
        ours, reference, products, difference = compare(dtype)
        print(
            f"  {dtype.__name__:8} {ours:8.2f} {reference:8.2f} {reference / ours:6.1f}x {products:9.2f} "
            f"{ours / products:13.1f}x {difference:11.1e}"
        )
    print("  ratio: NumPy's time over ours (target: at least 3). products: the two S×D×N matrix products alone.\n")
