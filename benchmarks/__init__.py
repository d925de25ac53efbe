"""Timings: ratios measured in one run, warm-up outside the clock. ``make benchmark`` runs them all."""
