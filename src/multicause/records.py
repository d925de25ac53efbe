"""Records that parts work with: parameters of a model, blocks of data, and moments of the data."""

from typing import NamedTuple

import numpy as np

from multicause.arrays import Array


class Parameters(NamedTuple):
    """Learned parameters of a model, as arrays.

    ``prior``, ``noise`` and ``posterior`` belong to the parts of that name.
    """

    components: Array  # (H, D)
    prior: dict[str, Array]
    noise: dict[str, Array]
    posterior: dict[str, Array] = {}  # α of MCA₃, weights of a recognition network; empty for most posteriors


class Block(NamedTuple):
    """Some rows of the data. Padding rows have weight zero."""

    rows: Array  # (n, D), NaN for missing values
    weights: Array  # (n,)
    summary: Array  # (n,) number for each row that the noise needs in every iteration, computed once


class Moments(NamedTuple):
    """Moments of the data, in double precision, from which initial parameters are drawn."""

    mean: np.ndarray  # (D,)
    variance: float  # variance over rows and dimensions together
    spread: float  # mean over dimensions of the variance over rows, which an offset of a dimension does not change
    epsilon: float  # relative rounding error of the data's dtype
