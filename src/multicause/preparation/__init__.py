"""Preparation of rows before learning: moments and whitening."""
