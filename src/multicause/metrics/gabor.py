"""How well fields are described by Gabor functions, as those of simple cells are: TN10 §10.3, figure 10.6."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares

# Widths of the envelope, in pixels, from which fits start, and bounds of what is sought.
STARTING_WIDTHS = ((1.2, 1.2), (2.0, 3.0), (3.0, 2.0))
SMALLEST_WIDTH = 0.4
# A fit is good enough for no further start to be tried.
EXCELLENT = 0.95


class GaborFit(NamedTuple):
    """Gabor functions A exp(−x′²/2a² − y′²/2b²) cos(2πf x′ + φ) beside fields; arrays have one entry per field.

    x′ runs across the stripes and y′ along them, around the centre (x, y), turned by ``orientation``.
    """

    explained: np.ndarray  # part of each field's squared length that the Gabor function explains, 0 to 1
    centre: np.ndarray  # (n, 2) x and y in pixels
    orientation: np.ndarray  # radians, of the direction across the stripes
    frequency: np.ndarray  # f in cycles per pixel
    width: np.ndarray  # (n, 2) a and b in pixels
    fitted: np.ndarray  # (n, height · width) the functions themselves


def fit_gabors(fields: ArrayLike, image_shape: tuple[int, int]) -> GaborFit:
    """Fit a Gabor function to each field (n, height · width) by least squares."""
    values = np.asarray(fields, dtype=float)
    height, width = image_shape
    if values.ndim != 2 or values.shape[1] != height * width:
        raise ValueError(
            f"fields must have shape (n, {height * width}) for images of {height}×{width}; got {values.shape}."
        )
    if not np.isfinite(values).all():
        raise ValueError("fields must be finite; they hold NaN or infinity.")
    found = [_fit_one(field.reshape(image_shape)) for field in values]
    explained, parameters, fitted = (np.array(part) for part in zip(*found, strict=True))
    return GaborFit(
        explained, parameters[:, :2], parameters[:, 2] % np.pi, np.abs(parameters[:, 5]), parameters[:, 3:5], fitted
    )


def _fit_one(field: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    height, width = field.shape
    y, x = np.mgrid[:height, :width].astype(float)
    target = field.ravel()
    power = target @ target
    if power == 0:
        return 0.0, np.array([0, 0, 0, 1, 1, 0.0]), np.zeros_like(target)
    target = target / np.sqrt(power)

    def waves(parameters: np.ndarray) -> np.ndarray:
        """The envelope times cosine and sine: amplitude and phase are linear in these two."""
        x0, y0, angle, a, b, frequency = parameters
        across = (x - x0) * np.cos(angle) + (y - y0) * np.sin(angle)
        along = (y - y0) * np.cos(angle) - (x - x0) * np.sin(angle)
        envelope = np.exp(-0.5 * ((across / a) ** 2 + (along / b) ** 2))
        phase = 2 * np.pi * frequency * across
        return np.stack([(envelope * np.cos(phase)).ravel(), (envelope * np.sin(phase)).ravel()], axis=1)

    def fitted(parameters: np.ndarray) -> np.ndarray:
        basis = waves(parameters)
        return basis @ np.linalg.lstsq(basis, target, rcond=None)[0]

    energy = field**2 / power
    # The centre of the strongest pixels: the mean over all would be drawn to the middle by noise.
    strong = np.where(energy >= np.quantile(energy, 0.8), energy, 0)
    centre = np.array([(strong * x).sum(), (strong * y).sum()]) / strong.sum()
    spectrum = np.abs(np.fft.rfft2(field - field.mean(), s=(4 * height, 4 * width)))
    row, column = np.unravel_index(spectrum.argmax(), spectrum.shape)
    fy, fx = np.fft.fftfreq(4 * height)[row], np.fft.rfftfreq(4 * width)[column]
    lower = [-2, -2, -np.inf, SMALLEST_WIDTH, SMALLEST_WIDTH, 0]
    upper = [width + 1, height + 1, np.inf, max(field.shape), max(field.shape), 0.71]
    best = (-1.0, np.zeros(6), np.zeros_like(target))
    for a, b in STARTING_WIDTHS:
        start = np.array([*centre, np.arctan2(fy, fx), a, b, np.clip(np.hypot(fx, fy), 1e-3, 0.7)])
        found = least_squares(lambda p: fitted(p) - target, start, bounds=(lower, upper), max_nfev=60, ftol=1e-4)
        explained = 1 - 2 * found.cost
        if explained > best[0]:
            best = (explained, found.x, np.sqrt(power) * fitted(found.x))
        if explained > EXCELLENT:
            break
    return best
