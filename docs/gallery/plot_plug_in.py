"""
A plug-in
=========

A loss of yours is a class. Here errors of one step are free, and each further step costs 1; the contract of losses is checked by one call.
"""

import matplotlib.pyplot as plt
import numpy as np

from advcli import AdversarialClassifier
from advcli.losses.convex_columns import ConvexColumnsLoss
from advcli.testing import check_loss


class InsensitiveLoss(ConvexColumnsLoss):
    """The adversarial loss of max(0, |prediction - truth| - width)."""

    def __init__(self, n_classes: int, width: float = 1.0) -> None:
        steps = np.abs(np.subtract.outer(np.arange(n_classes), np.arange(n_classes)))
        super().__init__(n_classes, matrix=np.maximum(steps - width, 0.0))


check_loss(InsensitiveLoss, width=1.0)
random = np.random.default_rng(0)
X = random.normal(size=(300, 2))
y = np.digitize(X[:, 0] + 0.5 * random.normal(size=300), [-1.2, -0.4, 0.4, 1.2])
model = AdversarialClassifier(InsensitiveLoss, C=1.0).fit(X, y)
steps = abs(model.predict(X) - y)
print(f"certified to {model.certificate_.relative_gap:.0e}; {np.mean(steps <= 1):.0%} of the rows within one step")

# %%
plt.matshow(model.cost_matrix_)
plt.xlabel("truth")
plt.ylabel("prediction")
plt.colorbar(label="cost")
plt.show()
