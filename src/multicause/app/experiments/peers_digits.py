"""Held-out likelihood of noisy-or causes on binary MNIST, beside mixtures of Bernoulli distributions of the same size.

Digits are those of ``mnist/mnist_test.npz`` in the folder MULTICAUSE_DATA, with pixels above half of white on. Scores
of noisy-or causes are log-likelihoods for up to ten causes, and else the bounds of their posterior, which are lower. Of
several mixtures, with different starts and priors, the one with the highest held-out likelihood is taken.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from multicause import NoisyOrCauses
from multicause.app.experiments.bernoulli_mixture import learn_mixture
from multicause.app.experiments.table import Line
from multicause.datasets.files import stored

# Numbers of rows to learn from and held out, and numbers of components.
SIZES = {"quick": (500, 500, (10,)), "default": (3000, 1000, (10, 50)), "paper": (8000, 2000, (10, 50, 100))}
STARTS = range(3)
PRIOR_ROWS = (0.1, 1.0, 5.0)


def held_out_digits(setting: str) -> Iterator[Line]:
    """Compare held-out likelihoods, with default settings of noisy-or causes."""
    n_learned, n_held_out, numbers = SIZES[setting]
    place = stored("mnist")
    what = "noisy-or on binary MNIST: held-out log p of a digit"
    if place is None:
        missing = "not run: set MULTICAUSE_DATA to a folder with mnist/mnist_test.npz"
        yield Line(what, "above the Bernoulli mixture's", missing, False)
        return
    grey = np.load(place / "mnist_test.npz")["x"]
    order = np.random.RandomState(0).permutation(len(grey))
    X = (grey.reshape(len(grey), -1)[order] > grey.max() / 2).astype(np.float32)
    learned, held_out = X[:n_learned], X[n_learned : n_learned + n_held_out]
    for H in numbers:
        mixtures = (
            learn_mixture(learned, H, prior_rows=rows, seed=seed).score(held_out)
            for rows in PRIOR_ROWS
            for seed in STARTS
        )
        rival = max(mixtures)
        found = float(NoisyOrCauses(H, random_state=0).fit(learned).score(held_out))
        yield Line(f"{what}, H = {H}", f"> {rival:.2f} (Bernoulli mixture)", f"{found:.2f}", found > rival)
