"""Stochastic gradients, for comparison: nobody imports them, the registry finds them by their names alone."""
