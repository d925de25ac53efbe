"""Poisson noise, for counts and other non-negative intensities: MCA08 eq. 2."""

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.compatibility import Spread
from multicause.noises.base import Noise

# Means above which counts are drawn from normal numbers z, as λ + √λ z + (z² − 1)/6, rounded (the Cornish–Fisher
# expansion): distribution functions differ by 1e-6 there, and by less above. JAX draws counts by way of single
# precision, which gives them a variance that is 2 % too large at 1e6, and as 64-bit integers, which end at 9e18.
NEARLY_NORMAL = 1e4


class Poisson(Noise):
    """p(y | w) = w^y e^{−w} / y!, with Γ(y + 1) for y! where y is not an integer.

    Parameters
    ----------
    floor : float, default=1e-6
        Means below it count as it, so that an observation above zero is improbable, not impossible, where all
        active causes are zero.
    """

    spread = Spread.MEAN

    def __init__(self, *, floor: float = 1e-6) -> None:
        self.floor = floor

    def validate(self) -> None:
        """A floor of zero would make impossible what should be improbable."""
        if not (np.isfinite(self.floor) and self.floor > 0):
            raise ValueError(f"floor of Poisson must be a positive number; got {self.floor!r}.")

    def natural(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """η(w) = log w."""
        return jnp.log(jnp.maximum(mean, self.floor))

    def log_normalizer(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """A(w) = w."""
        return jnp.maximum(mean, self.floor)

    def summarize(self, rows: Array) -> Array:
        """−Σ_d log y_d!."""
        return -jnp.sum(jax.scipy.special.gammaln(rows + 1), axis=-1)

    def log_base(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """b(y) = −log y!."""
        return summary

    def variance(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """The mean itself."""
        return jnp.maximum(mean, self.floor)

    def sample(self, key: Array, mean: Array, parameters: dict[str, Array]) -> Array:
        """Counts; where the mean is large, rounded numbers of nearly the same distribution."""
        rate = jnp.maximum(mean, self.floor).astype(jnp.float64)
        counts = jax.random.poisson(key, jnp.minimum(rate, NEARLY_NORMAL))
        # A key of its own leaves the counts of other means as they are.
        normal = jax.random.normal(jax.random.fold_in(key, 1), rate.shape, rate.dtype)
        large = jnp.round(rate + jnp.sqrt(rate) * normal + (normal**2 - 1) / 6)
        return jnp.where(rate > NEARLY_NORMAL, large, counts).astype(mean.dtype)

    def remedy(self, components: np.ndarray) -> str:
        """Counts have units: where the mean is below one, noise is larger than what it hides."""
        largest = float(np.max(components))
        if largest >= 1:
            return ""
        return (
            f"Poisson noise takes values as counts, and components have at most {largest:.2g} of them, so that noise "
            "hides the causes: multiply X by a constant, such that its values reach ten or more"
        )

    def check_data(self, X: np.ndarray) -> None:
        """Counts are not negative."""
        smallest = X.min()
        if smallest < 0:
            raise ValueError(
                f"Negative values in data: Poisson noise needs values of at least 0, and the smallest is "
                f"{smallest:.6g}. Shift the data, or use Gaussian noise."
            )
