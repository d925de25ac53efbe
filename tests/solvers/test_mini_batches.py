"""Learning in mini-batches: its stopping rule, and the program of a pass."""

import jax.numpy as jnp
import numpy as np
import pytest

from multicause import SparseCoding
from multicause.arrays import double_precision
from multicause.engines import Local
from multicause.records import Block, Parameters
from multicause.solvers.mini_batches import WINDOW, has_converged, one_pass
from multicause.solvers.presentation import Batches


@pytest.mark.parametrize(("rise", "converged"), [(0.009, True), (0.011, False)])
def test_the_mean_bound_of_several_passes_is_compared_with_that_of_earlier_ones(rise, converged):
    """The better of two starts counts; noise of single passes is averaged."""
    passes = np.arange(2 * WINDOW)
    noise = np.tile([0.5, 0.0, -0.5, 0.3, -0.3], 2)
    bounds = np.stack([rise * passes + noise, passes - 100.0], axis=1)
    assert has_converged(bounds, 0.01) == converged
    assert not has_converged(bounds[1:], 0.01)  # too few passes
    assert not has_converged(bounds, 0.0)


def test_a_pass_does_without_lapack():
    """In a loop over small batches, the threads of LAPACK take most of the time."""
    with double_precision():
        model = SparseCoding(4)._wire(Local().load(np.ones((2, 3))))
        parameters = Parameters(jnp.ones((4, 3)), {"scale": jnp.ones(4)}, {"variance": jnp.ones(())})
        block = Block(jnp.ones((6, 3)), jnp.ones(6), jnp.ones(6))
        batches = Batches(np.arange(6).reshape(3, 2), np.ones((3, 2)), np.ones(3), np.asarray(3))
        text = one_pass.lower(model, block, parameters, batches).as_text()
    assert "dot_general" in text
    assert "lapack" not in text
