"""
Sets with a price
=================

Each further class of a predicted set costs a price, and a set without the true class costs 1. Where classes overlap sets grow, and the
price says how far.
"""

import matplotlib.pyplot as plt
import numpy as np

from advcli import AdversarialClassifier

random = np.random.default_rng(0)
y = random.integers(4, size=1500)
X = random.normal(size=(1500, 2)) + 1.8 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])[y]
figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True)
for axis, price in zip(axes, (0.1, 0.25, 0.4), strict=True):
    model = AdversarialClassifier("label_sets", loss_options={"price": price}).fit(X[:500], y[:500])
    sets = model.predict(X[500:]).toarray()
    size, covered = sets.sum(axis=1), sets[np.arange(1000), y[500:]].mean()
    axis.scatter(*X[500:].T, c=size, s=8, vmin=1, vmax=4, cmap="viridis")
    axis.set_title(f"price {price}: {size.mean():.2f} classes, {covered:.0%} covered")
plt.show()
