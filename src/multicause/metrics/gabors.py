"""Fit of Gabor functions to image filters: position, size and tuning of each filter (EBM01 §6)."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import gaussian_filter

from multicause.arrays import Array, double_precision

# Number of Levenberg-Marquardt steps from each start, and factors by which the damping decreases and increases.
STEPS = 40
FALL, RISE = 0.3, 4.0
# Envelope sizes of the starts, as fractions of the shorter side.
FIRST_SIZES = ((0.08, 0.08), (0.16, 0.16), (0.10, 0.25))
# Range of envelope sizes: a third of a pixel to twice the longer side.
LEAST_SIZE, MOST_SIZE = 1 / 3, 2.0
# Largest frequency in each direction, in cycles per pixel; faster waves are aliases of slower ones.
NYQUIST = 0.5
# Zero padding of the Fourier transform that finds the initial frequency.
PADDING = 4
# Number of filters that are fitted at the same time.
AT_ONCE = 64
# A filter is well described by a Gabor function that leaves less than this fraction of its power, has its centre in the
# image, and whose envelope has a standard deviation of at most this fraction of the shorter side, in each direction.
LARGEST_ERROR = 0.3
LARGEST_SIZE = 0.5


class Gabors(NamedTuple):
    """Gabor functions A · exp(−u²/2σ₁² − v²/2σ₂²) · cos(2πf u + φ) of filters, with u along the wave."""

    position: np.ndarray  # (n, 2) row and column of the centre, in pixels
    size: np.ndarray  # (n, 2) σ₁ along the wave and σ₂ perpendicular to it, in pixels
    orientation: np.ndarray  # (n,) angle between the direction of the wave and the direction of columns, in [0, π)
    frequency: np.ndarray  # (n,) cycles per pixel
    phase: np.ndarray  # (n,) phase at the centre
    amplitude: np.ndarray  # (n,)
    error: np.ndarray  # (n,) fraction of the filter's power that the fit leaves
    localized: np.ndarray  # (n,) whether it is a Gabor function inside the image, by the criterion in this file


def fit_gabors(filters: ArrayLike, image_shape: tuple[int, int]) -> Gabors:
    """Fit a Gabor function to each filter by least squares.

    Parameters
    ----------
    filters : array-like of shape (n, height · width)
        One filter per row.
    image_shape : (int, int)
        Height and width of the images.

    Returns
    -------
    Gabors
        ``localized`` counts a filter whose fit leaves less than 30 % of its power, with its centre inside the image and
        both standard deviations of the envelope at most half the shorter side.

    Notes
    -----
    The amplitudes of cosine and sine follow from the other parameters by linear least squares; the remaining six
    (centre, logarithms of the sizes, frequency vector) are found by the Levenberg-Marquardt method from several sizes,
    with the initial frequency and centre from the filter's spectrum and envelope.
    """
    images = np.asarray(filters, dtype=float)
    height, width = image_shape
    if images.ndim != 2 or images.shape[1] != height * width:
        raise ValueError(
            f"filters must have shape (n, {height * width}) for images of {height}×{width}; got {images.shape}."
        )
    if min(height, width) < 4:
        raise ValueError(f"A Gabor function needs images of at least 4×4 pixels; got {height}×{width}.")
    if not np.isfinite(images).all():
        raise ValueError("filters must be finite; they hold NaN or infinity.")
    power = (images**2).sum(axis=1)
    if not (power > 0).all():
        raise ValueError(f"Filter {int(np.argmin(power))} is zero everywhere, so no function can be fitted to it.")
    normed = images / np.sqrt(power)[:, None]
    starts = np.stack([_starts(image.reshape(height, width)) for image in normed])  # (n, S, 6)
    with double_precision():
        fitted, errors, waves = jax.device_get(_fit((height, width), jnp.asarray(normed), jnp.asarray(starts)))
    best = errors.argmin(axis=1)
    rows = np.arange(len(images))
    theta, error, (cosine, sine) = fitted[rows, best], errors[rows, best], waves[rows, best].T
    position, size = theta[:, :2], np.exp(theta[:, 2:4])
    frequency = np.hypot(theta[:, 4], theta[:, 5])
    angle = np.arctan2(theta[:, 4], theta[:, 5])  # angle of the vector (row, column)
    # A wave of the opposite direction is the same wave with the opposite phase.
    turned = (angle < 0) | (angle >= np.pi)
    phase = np.arctan2(np.where(turned, sine, -sine), cosine)
    inside = ((position > -0.5) & (position < np.array([height, width]) - 0.5)).all(axis=1)
    small = (size <= LARGEST_SIZE * min(height, width)).all(axis=1)
    return Gabors(
        position=position,
        size=size,
        orientation=np.mod(angle, np.pi),
        frequency=frequency,
        phase=phase,
        amplitude=np.hypot(cosine, sine) * np.sqrt(power),
        error=error,
        localized=(error < LARGEST_ERROR) & inside & small,
    )


def _starts(image: np.ndarray) -> np.ndarray:
    """Return initial values of centre, log sizes and frequency vector: (S, 6)."""
    height, width = image.shape
    spectrum = np.abs(np.fft.rfft2(image, (PADDING * height, PADDING * width)))
    spectrum[0, 0] = 0
    i, j = np.unravel_index(spectrum.argmax(), spectrum.shape)
    vector = [np.fft.fftfreq(PADDING * height)[i], np.fft.rfftfreq(PADDING * width)[j]]
    # The centre is that of the smoothed local power, sharpened so that distant noise has little influence.
    local = gaussian_filter(image**2, 1.0, mode="constant", radius=3)
    local = local**2 / (local**2).sum()
    centre = [(local.sum(axis=1) * np.arange(height)).sum(), (local.sum(axis=0) * np.arange(width)).sum()]
    side = min(height, width)
    return np.array([[*centre, *np.log(np.multiply(side, sizes)), *vector] for sizes in FIRST_SIZES])


def _waves(image_shape: tuple[int, int], theta: Array) -> Array:
    """Compute the cosine and the sine of unit amplitude under the envelope: (2, P)."""
    height, width = image_shape
    rows, columns = jnp.meshgrid(jnp.arange(height) - theta[0], jnp.arange(width) - theta[1], indexing="ij")
    vector = jnp.clip(theta[4:], -NYQUIST, NYQUIST)
    frequency = jnp.sqrt((vector**2).sum() + 1e-12)
    along = (rows * vector[0] + columns * vector[1]) / frequency
    across = (columns * vector[0] - rows * vector[1]) / frequency
    limits = jnp.log(jnp.asarray([LEAST_SIZE, MOST_SIZE * max(image_shape)]))
    sizes = jnp.exp(jnp.clip(theta[2:4], *limits))
    envelope = jnp.exp(-((along / sizes[0]) ** 2) / 2 - (across / sizes[1]) ** 2 / 2)
    wave = 2 * jnp.pi * frequency * along
    return jnp.stack([envelope * jnp.cos(wave), envelope * jnp.sin(wave)]).reshape(2, -1)


def _amplitudes(waves: Array, image: Array) -> Array:
    """Compute the amplitudes (2,) by linear least squares.

    At frequency zero the sine vanishes, so a small diagonal term keeps the system solvable.
    """
    gram = waves @ waves.T + 1e-9 * jnp.eye(2)
    return jnp.linalg.solve(gram, waves @ image)


@partial(jax.jit, static_argnums=0)
def _fit(image_shape: tuple[int, int], images: Array, starts: Array) -> tuple[Array, Array, Array]:
    """Return parameters (n, S, 6), errors (n, S) and amplitudes (n, S, 2) of the fits from all starts."""

    def residual(theta: Array, image: Array) -> Array:
        waves = _waves(image_shape, theta)
        return image - _amplitudes(waves, image) @ waves

    def one(image: Array, start: Array) -> tuple[Array, Array, Array]:
        def step(_: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            theta, error, damping = carry
            difference = residual(theta, image)
            jacobian = jax.jacfwd(residual)(theta, image)
            gram = jacobian.T @ jacobian
            scale = jnp.diag(gram) + 1e-8
            move = jnp.linalg.solve(gram + damping * jnp.diag(scale), jacobian.T @ difference)
            new = theta - move
            new_error = (residual(new, image) ** 2).sum()
            better = new_error < error
            return (
                jnp.where(better, new, theta),
                jnp.where(better, new_error, error),
                jnp.clip(damping * jnp.where(better, FALL, RISE), 1e-9, 1e9),
            )

        first = (residual(start, image) ** 2).sum()
        theta, error, _ = jax.lax.fori_loop(0, STEPS, step, (start, first, jnp.asarray(1e-2)))
        limits = jnp.log(jnp.asarray([LEAST_SIZE, MOST_SIZE * max(image_shape)]))
        theta = theta.at[2:4].set(jnp.clip(theta[2:4], *limits)).at[4:].set(jnp.clip(theta[4:], -NYQUIST, NYQUIST))
        return theta, error, _amplitudes(_waves(image_shape, theta), image)

    def all_starts(pair: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        return jax.vmap(one, (None, 0))(*pair)

    return jax.lax.map(all_starts, (images, starts), batch_size=AT_ONCE)
