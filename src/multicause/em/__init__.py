"""Expectation maximization: E-step, step, loop, initial conditions and results."""
