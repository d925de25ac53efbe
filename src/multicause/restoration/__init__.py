"""Restoration of images and sounds that learns from the corrupted data alone."""

from multicause.restoration.images import denoise_image, inpaint_image
from multicause.restoration.noise_level import estimate_noise_level
from multicause.restoration.sounds import denoise_sound

__all__ = ["denoise_image", "denoise_sound", "estimate_noise_level", "inpaint_image"]
