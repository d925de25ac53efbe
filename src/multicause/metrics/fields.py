"""Which inputs causes stand for: fields as they are found by an experimenter, TN10 §10.3 and figure 10.6."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

# A field shows a true cause if both are correlated by more than this.
ALIKE = 0.9


def receptive_fields_by_dots(model: Any, *, contrast: float = 1.0) -> np.ndarray:
    """Responses of all causes to single bright and dark dots, half their difference: (n_components, n_features).

    For linear recognition these are the receptive fields themselves, times the contrast; recognition that is not
    linear gives other fields to other stimuli.
    """
    check_is_fitted(model)
    dots = contrast * np.eye(model.n_features_in_, dtype=model.components_.dtype)
    return 0.5 * (model.transform(dots) - model.transform(-dots)).T


def gratings(image_shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All gratings of an image's size: cosines and sines (n, 2, D), and their frequencies (n,) down and across."""
    height, width = image_shape
    y, x = np.mgrid[:height, :width]
    down, across = (part.ravel() for part in np.meshgrid(np.fft.fftfreq(height), np.fft.fftfreq(width), indexing="ij"))
    phases = 2 * np.pi * (down[:, None] * y.ravel() + across[:, None] * x.ravel())
    return np.stack([np.cos(phases), np.sin(phases)], axis=1), down, across


def receptive_fields_by_gratings(model: Any, image_shape: tuple[int, int], *, contrast: float = 1.0) -> np.ndarray:
    """Fields whose Fourier transform are the responses to gratings of all frequencies: (n_components, n_features).

    Responses to a cosine and a sine of one frequency are the real and imaginary part of the field's transform there.
    """
    check_is_fitted(model)
    stimuli, down, _ = gratings(image_shape)
    if stimuli.shape[-1] != model.n_features_in_:
        raise ValueError(
            f"image_shape must have {model.n_features_in_} pixels, one for each feature; got {image_shape}."
        )
    shown = contrast * stimuli.reshape(-1, stimuli.shape[-1]).astype(model.components_.dtype)
    responses = 0.5 * (model.transform(shown) - model.transform(-shown))
    responses = responses.reshape(len(down), 2, -1)
    transform = (responses[:, 0] - 1j * responses[:, 1]).T.reshape(-1, *image_shape)
    return np.fft.ifft2(transform).real.reshape(len(transform), -1)


def found_causes(fields: ArrayLike, causes: ArrayLike) -> np.ndarray:
    """Which true causes (n_causes, D) some field (n_fields, D) shows, up to scale and offset: (n_causes,) of bool."""
    shown, true = (np.asarray(values, dtype=float) for values in (fields, causes))
    if shown.ndim != 2 or true.ndim != 2 or shown.shape[1] != true.shape[1]:
        raise ValueError(f"fields and causes must have rows of the same length; got {shown.shape} and {true.shape}.")

    def standard(values: np.ndarray) -> np.ndarray:
        centred = values - values.mean(axis=1, keepdims=True)
        return centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-12)

    return (standard(true) @ standard(shown).T).max(axis=1) > ALIKE
