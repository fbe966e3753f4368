"""
Decision boundaries
===================

Where each loss changes its prediction, in two columns of the wine data.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from advcli import AdversarialClassifier

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X[:, [6, 12]])
first, second = np.meshgrid(np.linspace(-2.5, 3.5, 200), np.linspace(-2.0, 3.5, 200))
grid = np.column_stack([first.ravel(), second.ravel()])
canvas, panels = plt.subplots(2, 2, sharex=True, sharey=True, layout="constrained")
for axes, loss in zip(panels.ravel(), ("zero_one", "cs", "ww", "llw"), strict=True):
    fitted = AdversarialClassifier(loss, C=10.0).fit(X, y)
    axes.contourf(first, second, fitted.predict(grid).reshape(first.shape), levels=[-0.5, 0.5, 1.5, 2.5], alpha=0.3)
    axes.scatter(*X.T, c=y, s=8)
    axes.set_title(f"{loss}: {fitted.score(X, y):.2f} right")
plt.show()
