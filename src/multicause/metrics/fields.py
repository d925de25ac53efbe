"""Receptive fields of causes, measured by stimuli as in an experiment: TN10 §10.3 and figure 10.6."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

# A field matches a true cause if their correlation exceeds this.
ALIKE = 0.9


def receptive_fields_by_dots(model: Any, *, contrast: float = 1.0) -> np.ndarray:
    """Measure receptive fields by single bright and dark dots: (n_components, n_features).

    The field is half the difference of the responses to a bright and a dark dot. For linear recognition these are the
    receptive fields themselves, times the contrast; nonlinear recognition has different fields for different stimuli.
    """
    check_is_fitted(model)
    dots = contrast * np.eye(model.n_features_in_, dtype=model.components_.dtype)
    return 0.5 * (model.transform(dots) - model.transform(-dots)).T


def gratings(image_shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all gratings of an image's size: cosines and sines (n, 2, D), and vertical and horizontal frequencies
    (n,).
    """
    height, width = image_shape
    y, x = np.mgrid[:height, :width]
    down, across = (part.ravel() for part in np.meshgrid(np.fft.fftfreq(height), np.fft.fftfreq(width), indexing="ij"))
    phases = 2 * np.pi * (down[:, None] * y.ravel() + across[:, None] * x.ravel())
    return np.stack([np.cos(phases), np.sin(phases)], axis=1), down, across


def receptive_fields_by_gratings(model: Any, image_shape: tuple[int, int], *, contrast: float = 1.0) -> np.ndarray:
    """Measure receptive fields by gratings of all frequencies: (n_components, n_features).

    Responses to a cosine and a sine of one frequency are the real and imaginary part of the field's Fourier transform
    there.
    """
    check_is_fitted(model)
    stimuli, down, _ = gratings(image_shape)
    if stimuli.shape[-1] != model.n_features_in_:
        raise ValueError(
            f"image_shape must have {model.n_features_in_} pixels, one for each feature; got {image_shape}."
        )
    rows = contrast * stimuli.reshape(-1, stimuli.shape[-1]).astype(model.components_.dtype)
    responses = 0.5 * (model.transform(rows) - model.transform(-rows))
    responses = responses.reshape(len(down), 2, -1)
    transform = (responses[:, 0] - 1j * responses[:, 1]).T.reshape(-1, *image_shape)
    return np.fft.ifft2(transform).real.reshape(len(transform), -1)


def found_causes(fields: ArrayLike, causes: ArrayLike) -> np.ndarray:
    """Return which true causes (n_causes, D) match a field (n_fields, D), up to scale and offset: (n_causes,)."""
    learned, true = (np.asarray(values, dtype=float) for values in (fields, causes))
    if learned.ndim != 2 or true.ndim != 2 or learned.shape[1] != true.shape[1]:
        raise ValueError(f"fields and causes must have rows of the same length; got {learned.shape} and {true.shape}.")

    def standard(values: np.ndarray) -> np.ndarray:
        centred = values - values.mean(axis=1, keepdims=True)
        return centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-12)

    return (standard(true) @ standard(learned).T).max(axis=1) > ALIKE
