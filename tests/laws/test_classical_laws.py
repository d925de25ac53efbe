"""The common laws on the classical models; those that enumerate binary states have closed forms in other files."""

import inspect

import numpy as np
import pytest

from tests.laws import test_laws as laws
from tests.laws.classical import CLASSICAL

pytestmark = [
    pytest.mark.parametrize("configuration", CLASSICAL, ids=str),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

LAWS = [
    laws.test_bound_never_falls_without_annealing,
    laws.test_converged_only_when_at_rest,
    laws.test_blocks_do_not_matter,
    laws.test_statistics_of_the_whole_are_the_sum_of_parts,
    laws.test_integer_weight_is_repetition,
    laws.test_single_precision_follows_double,
    laws.test_memory_order_does_not_matter,
    laws.test_same_seed_same_result_and_restarts_keep_the_best,
    laws.test_partial_fit_learns_from_a_stream,
    laws.test_save_and_load,
    laws.test_all_starts_agree_with_one,
    laws.test_a_warning_names_remedies,
]

# Laws that do not apply, and why; what does has tests in the model's own file.
NOT_FALLING, STREAM = laws.test_bound_never_falls_without_annealing, laws.test_partial_fit_learns_from_a_stream
WEIGHTS, PRECISION = laws.test_integer_weight_is_repetition, laws.test_single_precision_follows_double
RESTARTS = laws.test_same_seed_same_result_and_restarts_keep_the_best
BLOCKS, STARTS = laws.test_blocks_do_not_matter, laws.test_all_starts_agree_with_one
PARTS, REST = laws.test_statistics_of_the_whole_are_the_sum_of_parts, laws.test_converged_only_when_at_rest
REMEDIES = laws.test_a_warning_names_remedies
EXCEPTIONS = {
    ("principal-components", NOT_FALLING): "has one iteration",
    ("principal-components", RESTARTS): "has one optimum for all seeds",
    ("principal-components", REST): "has one iteration",
    ("principal-components", REMEDIES): "always ends",
    ("sparse-coding", NOT_FALLING): "the rule of lengths does not raise F",
    ("sparse-coding", STREAM): "statistics of delta rules are not averaged over batches",
    ("sparse-coding", BLOCKS): "each block is at least one batch",
    ("independent-components", PARTS): "the law shows it rows that are not whitened",
    ("helmholtz-machine", PARTS): "sampled causes belong to the place of a row",
    ("helmholtz-machine", REST): "F is an estimate by sampled causes",
    ("independent-components", WEIGHTS): "init has the size of whitened data",
    ("independent-components", STARTS): "init has the size of whitened data",
    ("helmholtz-machine", NOT_FALLING): "learns by chance",
    ("helmholtz-machine", PRECISION): "random numbers of both precisions differ",
    ("helmholtz-machine", BLOCKS): "random numbers belong to blocks while learning",
    ("helmholtz-machine", STARTS): "starts differ in their recognition weights and random numbers",
}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__.removeprefix("test_"))
def test_common_laws(configuration, law, seed, tmp_path):
    if (configuration.name, law) in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[configuration.name, law])
    available = {"configuration": configuration, "seed": seed, "tmp_path": tmp_path}
    law(**{name: available[name] for name in inspect.signature(law).parameters})


def test_free_energy_is_what_learning_raises(configuration, seed):
    X = configuration.rows(seed)
    model = configuration.make().fit(X)
    if configuration.name == "principal-components":
        pytest.skip("deterministic recognition has a density of its own, see its own test")
    np.testing.assert_allclose(model.free_energy(X).mean(), model.lower_bound_, rtol=1e-9)
    assert (model.free_energy(X) <= model.score_samples(X) + 1e-9).all()
