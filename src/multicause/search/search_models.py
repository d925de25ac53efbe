"""Models of an automatic search, which differ in their posterior: for annealing, for repair, and for the result."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from multicause.model import Model
from multicause.posteriors import MOST_ENUMERATED, Exact, Posterior, Preselected
from multicause.states.state_list import sparse_states

# Candidates and active causes of the sparse posterior: the values of ET10 for all its experiments on bars.
SEARCH_SIZES = (5, 3)
# Number of sparse states of all causes up to which all of them are candidates. Such states are matrix products, which
# compile and run faster than the 26 states of 5 candidates that every row selects, unless these need no means because
# causes add up. (16 causes, 697 states, 64 features: 30 % of the time for the noisy-or, 60 % under the max rule.)
MOST_SHARED_STATES = 1024
MOST_SHARED_SUMS = 512


class SearchModels(NamedTuple):
    """Models of the phases of a search; they are the same object where the posterior is the same."""

    annealing: Model
    search: Model  # for EM and repair on the rows of the search
    final: Model  # that of the user


def choose_models(model: Model, n_components: int) -> SearchModels:
    """Return the user's model, and models with sparser or exact posteriors that find its causes better."""
    # With few causes all of them are candidates anyway, but a data cut must wait until the causes are found.
    use_sparse = model.prior.selectable and (n_components > SEARCH_SIZES[0] or model.posterior.keep is not None)
    sparse_model = replace(model, posterior=search_posterior(model, n_components)) if use_sparse else model
    search_model = model if model.posterior.shares_states(n_components) else sparse_model
    if model.posterior.ascends_bound:
        return SearchModels(sparse_model, search_model, model)
    # Posteriors that do not ascend a bound are suited to annealing, but their bound cannot compare solutions.
    if n_components <= MOST_ENUMERATED:
        search_model = replace(model, posterior=Exact())
    return SearchModels(model, search_model, model)


def search_posterior(model: Model, n_components: int) -> Posterior:
    """Return a posterior with few active causes and candidates, and without a data cut."""
    candidates, max_active = (min(size, n_components) for size in SEARCH_SIZES)
    most = MOST_SHARED_SUMS if model.linear else MOST_SHARED_STATES
    few = sparse_states(n_components, max_active).n_states <= most
    if few and model.prior.is_binary:
        return Preselected(n_components, max_active, keep=None).bind(model, n_components, 1, 1)
    smaller = model.posterior.with_fewer_states(candidates, max_active)
    return smaller or Preselected(candidates, max_active, keep=None).bind(model, n_components, 1, 1)
