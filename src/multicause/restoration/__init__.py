"""Restoration of images and sounds that learns from the corrupted data alone."""

from multicause.restoration.noise_level import estimate_noise_level

__all__ = ["estimate_noise_level"]
