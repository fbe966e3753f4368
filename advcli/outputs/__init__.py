"""Structured output spaces, which know potentials and labels: their oracles, surrogates of margin and loss, searches for the maximum."""
