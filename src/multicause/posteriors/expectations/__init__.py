"""Helpers of several posteriors: expectations over lists of states, sums over rows, missing values, precision."""
