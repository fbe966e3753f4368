"""Label spaces of structured learners, which know potentials and labels: oracles, surrogates of margin and loss, searches."""
