"""Which experts may compute energies in columns: those whose energy is the same function of each activity."""

import jax.numpy as jnp

from multicause.energies import Logistic


def test_an_expert_with_the_energy_of_another_may_use_columns_too():
    class Named(Logistic):
        """Its energy is that of its base class."""

    class Steeper(Logistic):
        """Its energy depends on the unit."""

        def energy(self, activity, shape):
            return super().energy(activity, shape) * jnp.arange(1, activity.shape[1] + 1)

    class Quadratic:
        """No expert itself, but has an energy."""

        def energy(self, activity, shape):
            return activity**2 * jnp.arange(1, activity.shape[1] + 1)

    class Mixed(Quadratic, Logistic):
        """Its energy is not that of the expert."""

    assert Named.elementwise
    assert not Steeper.elementwise
    assert not Mixed.elementwise
