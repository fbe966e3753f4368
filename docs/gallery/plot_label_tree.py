"""
A label tree
============

Labels are leaves of a tree, and every node has weights that its leaves share. Few rows of a class are less of a loss where its siblings
help.
"""

import matplotlib.pyplot as plt
import numpy as np

from advcli import HierarchicalClassifier

edges = [("animal", "mammal"), ("animal", "bird"), ("mammal", "cat"), ("mammal", "dog"), ("bird", "hawk"), ("bird", "owl")]
kinds = np.array(["cat", "dog", "hawk", "owl"])
centre = np.array([[0, 0, 0], [0, 1, 0], [3, 0, 0], [3, 0, 1]], dtype=float)


def drawn(rows, seed):
    """Return rows and their labels."""
    random = np.random.default_rng(seed)
    y = random.integers(4, size=rows)
    return centre[y] + random.normal(size=(rows, 3)), kinds[y]


new, truth = drawn(2000, 99)
sizes = (8, 16, 32, 64, 128)
for model in ("flat", "hsvm", "nhsvm"):
    accuracy = []
    for rows in sizes:
        samples = [drawn(rows, seed) for seed in range(5)]
        accuracy.append(np.mean([HierarchicalClassifier(edges, model=model).fit(*sample).score(new, truth) for sample in samples]))
    plt.plot(sizes, accuracy, marker="o", label=model)
plt.xscale("log")
plt.xlabel("rows")
plt.ylabel("accuracy on new rows")
plt.legend()
plt.show()
