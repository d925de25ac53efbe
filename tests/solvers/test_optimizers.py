"""Steps of optimizers, compared with their formulas."""

import jax.numpy as jnp
import numpy as np
import pytest

from multicause import HelmholtzMachine
from multicause.solvers.optimizers import Momentum, Optax, first_optimizer_state, stepped

START, GRADIENTS = np.array([1.0, -2.0]), [np.array([0.5, -4.0]), np.array([0.25, 1.0])]


def by_hand(name, rate):
    """Two steps in plain NumPy."""
    place, velocity = START.copy(), np.zeros(2)
    first, second = np.zeros(2), np.zeros(2)
    for number, slope in enumerate(GRADIENTS, start=1):
        if name == "adam":
            first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
            means = first / (1 - 0.9**number), second / (1 - 0.999**number)
            place = place - rate * means[0] / (np.sqrt(means[1]) + 1e-8)
        else:
            velocity = (0.9 if name == "momentum" else 0.0) * velocity - rate * slope
            place = place + velocity
    return place


@pytest.mark.parametrize(
    ("name", "optimizer"), [("sgd", Optax("sgd")), ("momentum", Momentum()), ("adam", Optax("adam"))]
)
def test_steps_follow_their_formulas(name, optimizer):
    place = {"weights": jnp.asarray(START, jnp.float32)}
    optimizer_state = first_optimizer_state(optimizer, place)
    for slope in GRADIENTS:
        gradient = {"weights": jnp.asarray(slope, jnp.float32)}
        place, optimizer_state = stepped(optimizer, jnp.float32(0.1), place, optimizer_state, gradient)
    np.testing.assert_allclose(place["weights"], by_hand(name, 0.1), rtol=1e-5)


def test_plain_steps_need_no_state():
    assert first_optimizer_state(Optax("sgd"), {"weights": jnp.ones(3)}) == ()


def test_a_helmholtz_machine_takes_names_and_settings_of_optimizers():
    model = HelmholtzMachine(2, optimizer="momentum").set_params(optimizer__momentum=0.5)
    assert model._solver().optimizer == Momentum(0.5)
    assert HelmholtzMachine(2)._solver().optimizer == Optax("sgd")
    with pytest.raises(ValueError, match="Unknown optimizer 'newton'. Known: 'momentum', 'adam'"):
        HelmholtzMachine(2, optimizer="newton")._solver()
