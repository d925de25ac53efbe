"""Poisson noise, for counts and other non-negative intensities: MCA08 eq. 2."""

import jax
import jax.numpy as jnp
import numpy as np

from multicause.arrays import Array
from multicause.compatibility import Spread
from multicause.noises.base import Noise

# Mean above which counts are computed from normal random numbers z, as λ + √λ z + (z² − 1)/6, rounded (the
# Cornish–Fisher expansion): distribution functions differ by 1e-6 at this mean, and by less above. JAX computes counts
# in single precision, with a variance that is 2 % too large at 1e6, and as 64-bit integers, which end at 9e18.
NEARLY_NORMAL = 1e4


class Poisson(Noise):
    """Poisson noise p(y | w) = w^y e^{−w} / y!, with Γ(y + 1) for y! if y is not an integer.

    Parameters
    ----------
    floor : float, default=1e-6
        Smaller means are replaced by it, so that an observation above zero is improbable, not impossible, if all
        active causes are zero.
    """

    spread = Spread.MEAN

    def __init__(self, *, floor: float = 1e-6) -> None:
        self.floor = floor

    def validate(self) -> None:
        """Raise ValueError unless the floor is positive; zero would make some observations impossible."""
        if not (np.isfinite(self.floor) and self.floor > 0):
            raise ValueError(f"floor of Poisson must be a positive number; got {self.floor!r}.")

    def natural(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the natural parameter η(w) = log w."""
        return jnp.log(jnp.maximum(mean, self.floor))

    def log_normalizer(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the log normalizer A(w) = w."""
        return jnp.maximum(mean, self.floor)

    def summarize(self, rows: Array) -> Array:
        """Return −Σ_d log y_d! of each row: (n,)."""
        return -jnp.sum(jax.scipy.special.gammaln(rows + 1), axis=-1)

    def log_base(self, rows: Array, summary: Array, parameters: dict[str, Array]) -> Array:
        """Return b(y) = −log y!, summed over dimensions: (n,)."""
        return summary

    def variance(self, mean: Array, parameters: dict[str, Array]) -> Array:
        """Return the variance, which equals the mean."""
        return jnp.maximum(mean, self.floor)

    def sample(self, key: Array, mean: Array, parameters: dict[str, Array]) -> Array:
        """Draw counts; for large means, rounded numbers of nearly the same distribution."""
        rate = jnp.maximum(mean, self.floor).astype(jnp.float64)
        counts = jax.random.poisson(key, jnp.minimum(rate, NEARLY_NORMAL))
        # A separate key leaves the counts of other means unchanged.
        normal = jax.random.normal(jax.random.fold_in(key, 1), rate.shape, rate.dtype)
        large = jnp.round(rate + jnp.sqrt(rate) * normal + (normal**2 - 1) / 6)
        return jnp.where(rate > NEARLY_NORMAL, large, counts).astype(mean.dtype)

    def remedy(self, components: np.ndarray) -> str:
        """Return advice if all means are below one, so that noise is larger than the components."""
        largest = float(np.max(components))
        if largest >= 1:
            return ""
        return (
            f"Poisson noise takes values as counts, and components have at most {largest:.2g} of them, so that noise "
            "hides the causes: multiply X by a constant, such that its values reach ten or more"
        )

    def check_data(self, X: np.ndarray) -> None:
        """Raise ValueError if there are negative values."""
        smallest = X.min()
        if smallest < 0:
            raise ValueError(
                f"Negative values in data: Poisson noise needs values of at least 0, and the smallest is "
                f"{smallest:.6g}. Shift the data, or use Gaussian noise."
            )
