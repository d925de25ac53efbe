"""One EM iteration without the loop around it, for benchmarks of kernels."""

from functools import partial

import jax

from multicause.em.e_step import expect
from multicause.em.m_step import maximize_one


@partial(jax.jit, static_argnums=0)
def maximize(model, statistics, parameters):
    """M-step of all starts."""
    return jax.vmap(partial(maximize_one, model))(statistics, parameters)


def one_iteration(model, data, parameters, temperature):
    """E-step over all blocks and M-step; returns the new parameters."""
    statistics = data.sum(partial(expect, model), parameters, temperature)
    return jax.block_until_ready(maximize(model, statistics, parameters))
