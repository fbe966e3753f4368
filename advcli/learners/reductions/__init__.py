"""Reductions of a problem with several classes, or with costs, to binary problems."""
