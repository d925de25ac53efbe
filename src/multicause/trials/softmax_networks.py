"""Trials of softmax networks, each network in one compiled loop."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils import check_random_state

from multicause.arrays import key_from
from multicause.learning import hebbian
from multicause.learning.bulk import on_all_cores
from multicause.learning.epochs import ending
from multicause.learning.expectation_maximization import start_of
from multicause.trials.base import BulkTrial

if TYPE_CHECKING:
    from multicause.models.softmax_network import SoftmaxNetwork


class NetworkTrial(BulkTrial):
    """Networks from all starts, of which the best is kept; one network where the ``causes`` are known."""

    def __init__(self, estimator: SoftmaxNetwork, dataset: np.ndarray, causes: np.ndarray | None = None) -> None:
        estimator._validate_params()
        X = estimator._validate_rows(dataset, reset=True)
        probes = estimator._validate_causes(causes, X)
        random = check_random_state(estimator.random_state)
        self.estimator, self.n_rows, self.known = estimator, len(X), probes is not None
        weights = np.ones(len(X), X.dtype)
        self.course = estimator._begin(X, weights, random, compared=not self.known and estimator.n_init > 1)
        networks = [
            (hebbian.begin(weights, probes), X, jax.random.key_data(key_from(random)), self.course.rule)
            for weights in self.course.starts.components[: 1 if self.known else None]
        ]
        self.given = jax.tree.map(lambda *leaves: np.stack(leaves), *networks)

    def learn(self, given: tuple[hebbian.Network, np.ndarray, np.ndarray, hebbian.Rule]) -> hebbian.Network:
        """Epochs of all networks."""
        estimator = self.estimator
        settings = (int(estimator.hold), int(estimator.max_iter), estimator.annealing, self.known)
        return on_all_cores(partial(hebbian.learn_many, *settings), given)

    def keep(self, found: hebbian.Network) -> None:
        """The network with the highest evidence."""
        course, start = self.course, start_of(self.course.starts)
        candidates = [start._replace(components=jnp.asarray(average)) for average in found.average]
        evidence = [course.evidence(parameters) for parameters in candidates]
        # The first of equals, and the first of all where its evidence is not a number.
        best = max(range(len(evidence)), key=evidence.__getitem__)
        network, parameters = start_of(found, best), candidates[best]
        n_epochs, learned = int(network.presented) // self.n_rows, course.has_learned(network, self.n_rows)
        end = ending(parameters, course.expect(parameters), n_epochs, learned)
        self.estimator._keep_network(course, end, network, ended=True)
