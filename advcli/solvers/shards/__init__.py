"""Rows that lie on several machines, and the solver that visits them there."""
