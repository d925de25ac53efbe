"""MCA₃, R-MCA₂ and the softmax network by Python loops over causes, written from MCA08's equations 16–25 and 33–36.

It shares no code with the library.
"""

from itertools import combinations

import numpy as np


def score(y, w, noise, sigma=None, floor=1e-6):
    """I of MCA08 eq. 18; its counterpart for Gaussian noise leaves out what depends on y alone."""
    if noise == "poisson":
        w = np.maximum(w, floor)
        return np.sum(np.log(w) * y - w)
    return np.sum(w * y - w**2 / 2) / sigma**2


def weights(y, W, activity, temperature, noise, sigma, most, empty=True):
    """F(s)^β of all states with at most ``most`` active causes, as a dictionary from tuples of causes."""
    odds = activity / (1 - activity)
    F = {}
    for k in range(0 if empty else 1, most + 1):
        for s in combinations(range(len(W)), k):
            w = np.max([W[h] for h in s], axis=0) if s else np.zeros(W.shape[1])
            F[s] = np.prod([odds[h] for h in s]) ** (1 / temperature) * np.exp(score(y, w, noise, sigma) / temperature)
    return F


def step(x):
    """The smoothed Heaviside function of eq. 35, given its argument times the slope."""
    return 1 / (1 + np.exp(-x))


def mca3(Y, W, activity, alpha, temperature, noise="poisson", sigma=None):
    """New W, π and α of MCA₃: eq. 9, 11, 16, 17 and 33 to 36."""
    H, D = W.shape
    data, credit, active, sparse = np.zeros((H, D)), np.zeros((H, D)), np.zeros(H), 0.0
    for y in Y:
        F = weights(y, W, activity, temperature, noise, sigma, 3)
        Z = sum(F.values())
        sparse += sum(f for s, f in F.items() if len(s) <= 2) / Z
        for i in range(H):
            A = np.full(D, F[(i,)])
            total = F[(i,)]
            for c in range(H):
                if c != i:
                    pair = F[tuple(sorted((i, c)))]
                    A = A + pair * step(0.2 / (temperature - 1) * (W[i] - W[c]))
                    total += pair
            total += alpha * sum(f for s, f in F.items() if len(s) == 3 and i in s)
            data[i] += A / Z * y
            credit[i] += A / Z
            active[i] += total / Z
    N = len(Y)
    new = active / N
    odds = new / (1 - new)
    expected = np.prod(1 - new) * (1 + odds.sum() + sum(odds[a] * odds[b] for a, b in combinations(range(H), 2)))
    # Weights are not negative in this model, but means of data with Gaussian noise may be.
    return np.maximum(data / credit, 0), new, alpha + expected - sparse / N


def responses(y, W, pi, temperature, tempered=True):
    """g of eq. 22, for a row that is not zero; with ``tempered`` odds as in GSN07 eq. 20."""
    H, odds = len(W), pi / (1 - pi)
    odds = odds ** (1 / temperature) if tempered else odds
    singles = np.array([np.exp(score(y, W[h], "poisson") / temperature) for h in range(H)])
    pairs = sum(np.exp(score(y, np.maximum(W[a], W[b]), "poisson") / temperature) for a, b in combinations(range(H), 2))
    return singles / (singles.sum() + odds * pairs)


def rmca2(Y, W, pi, temperature):
    """New W of R-MCA₂, eq. 21."""
    sums = sum(np.outer(responses(y, W, pi, temperature), y) for y in Y if y.any())
    return W.sum(axis=1, keepdims=True) * sums / sums.sum(axis=1, keepdims=True)


def hebbian(Y, W, pi, temperature, rate, tempered=False):
    """Weights after each row was shown once, without noise: eq. 23; one temperature, or one for each row."""
    total = W[0].sum()
    for y, T in zip(Y, np.broadcast_to(temperature, len(Y)), strict=True):
        if y.any():
            W = W + rate * np.outer(responses(y, W, pi, T, tempered), y)
            W = total * W / W.sum(axis=1, keepdims=True)
    return W
