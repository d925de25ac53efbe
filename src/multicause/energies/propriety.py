"""Test whether a product of heavy-tailed experts is a proper density, i.e. has a finite integral.

Let f_i be filters in R dimensions, and let expert i fall like |f_iᵀz|^(−x_i) for large z. Within a subspace V the
volume grows with the dimension of V, and those experts fall whose filters do not vanish on V. The integral of the
product is finite if and only if, for every subspace V of at least one dimension::

    Σ_{i: f_i does not vanish on V} x_i > dim V

(power counting, S. Weinberg 1960). The largest V on which a set A of filters vanishes has R − rank(A) dimensions, so
that it is enough to consider sets of filters. The smallest ratio of both sides is::

    min_A Σ_{i not in A} x_i / (R − rank(A)),

the *strength* of the filters as a matroid with the weights x_i. It equals the largest total weight of bases of the
space that can be packed into x (J. Edmonds 1965). This is a linear program whose dual has one constraint for each
basis; constraints are added one by one, as far as they are needed. A basis of least weight is found greedily, by taking
filters in the order of their weights.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

# A filter lies in the span of others if its part outside their span is below this many machine epsilons.
ROUNDINGS = 100
# A strength that exceeds one by less than this counts as one, for which the integral is infinite.
MARGIN = 1e-9
# Largest number of constraints of the linear program. Models of 100 filters in 50 dimensions took 20.
MOST_BASES = 1000


def basis_of_least_weight(filters: np.ndarray, weights: np.ndarray, precision: float) -> np.ndarray:
    """Return the indices of a basis of the span of filters (H, R), the one with the smallest total weight."""
    directions = np.zeros((0, filters.shape[1]))
    chosen: list[int] = []
    for number in np.argsort(weights, kind="stable"):
        length = np.linalg.norm(filters[number])
        rest = filters[number] / length if length > 0 else filters[number]
        for _ in range(2):  # repeat the orthogonalization, because of rounding errors
            rest = rest - directions.T @ (directions @ rest)
        if (size := np.linalg.norm(rest)) > ROUNDINGS * precision:
            directions, chosen = np.vstack([directions, rest / size]), [*chosen, number]
            if len(chosen) == filters.shape[1]:
                break
    return np.array(chosen, dtype=int)


def is_strong(filters: np.ndarray, exponents: np.ndarray, precision: float) -> bool:
    """Return whether the strength of filters (H, R) with tail exponents x (H,) exceeds one.

    The filters must span all R dimensions.
    """
    x, enough = np.asarray(exponents, dtype=float), 1 + MARGIN
    heaviest = basis_of_least_weight(filters, -x, precision)
    if x[heaviest].min() > enough:  # one basis is enough
        return True
    bases = [heaviest]
    while len(bases) < MOST_BASES:
        rows = np.zeros((len(bases), len(x)))
        for row, basis in zip(rows, bases, strict=True):
            row[basis] = 1
        # The lightest p with p(B) ≥ 1 for all bases B so far. Its total can only increase with further bases.
        solution = linprog(x, A_ub=-rows, b_ub=-np.ones(len(bases)), bounds=(0, None), method="highs")
        if solution.fun > enough:
            return True
        basis = basis_of_least_weight(filters, solution.x, precision)
        weight = solution.x[basis].sum()
        # Divided by its weight in the lightest basis, p is feasible for all bases, so the strength is at most its
        # total.
        if weight > 0 and solution.fun / weight <= enough:
            return False
        bases.append(basis)
    raise RuntimeError(f"No decision about {len(x)} filters after {MOST_BASES} bases.")
