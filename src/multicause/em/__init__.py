"""Expectation maximization: E-step, M-step, loop, convergence and results."""
