"""Exact EM for the noisy-or, by the probability that each active cause has set a feature to one."""

from multicause.arrays import Array
from multicause.compatibility import Expectation, Likelihood, Link, Requirements, Rule, Spread, Support
from multicause.expectations import Inference
from multicause.generative import GenerativeModel
from multicause.records import Parameters
from multicause.updates.base import Update, shares_of_active


class ActivationShares(Update):
    """The update W_hd ← Σ⟨s_h y_d W_hd / p_d⟩ / Σ⟨s_h⟩: how often cause h, if active, has set feature d to one.

    Given that d is one, which has probability p_d(s), an active cause h has set it to one with probability W_hd / p_d,
    and given that d is zero, it has not (T. Šingliar and M. Hauskrecht, Noisy-OR Component Analysis and its Application
    to Link Analysis, JMLR 7 (2006) 2189–2213).
    """

    monotone = True
    requires = Requirements(
        supports=frozenset({Support.BINARY, Support.ONE_HOT}),
        rules=frozenset({Rule.NOISY_OR}),
        links=frozenset({Link.MEAN}),
        likelihoods=frozenset({Likelihood.OF_MEANS}),
        spreads=frozenset({Spread.LEAKY}),
        expectations=frozenset({Expectation.CREDIT}),
    )

    def statistics(self, model: GenerativeModel, parameters: Parameters, inference: Inference) -> dict[str, Array]:
        """Return how often causes have set features to one, W_hd Σ⟨s_h y_d / p_d⟩, and how often they are active."""

        def per_activation(mean: Array, overlap: Array, noise: dict[str, Array]) -> Array:
            return 1 / model.noise.probability(mean)

        (pulled,) = inference.pull((per_activation, None))
        active = inference.total_causes if inference.observed is None else inference.observed_causes
        return {"activations": parameters.components * pulled, "active": active}

    def maximize(self, model: GenerativeModel, parameters: Parameters, statistics: dict[str, Array]) -> Array:
        """Return the share of its active rows in which a cause has set a feature to one."""
        shares = shares_of_active(statistics["activations"], statistics["active"], parameters.components)
        return model.combination.project(shares)
