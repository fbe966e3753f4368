"""Stochastic methods, for comparison: subgradients, Pegasos, stochastic average gradient."""
