"""
From logistic regression to zero-one
====================================

One family of losses leads from multinomial logistic regression (alpha = 1) to the adversarial zero-one loss (alpha = infinity). The larger
alpha is, the more scores get a probability of exactly 0 and a loss of exactly 0.
"""

import matplotlib.pyplot as plt
import numpy as np

from advcli.losses import make_loss

lead = np.linspace(-2.0, 4.0, 241)
scores = np.column_stack([lead / 2, -lead / 2])
figure, (values, chances) = plt.subplots(1, 2, figsize=(10, 3.8))
for alpha in (1.0, 2.0, 8.0, np.inf):
    loss = make_loss("entropy", 2, alpha=alpha)
    values.plot(lead, loss.value(scores, np.zeros(len(lead), dtype=int)), label=f"alpha = {alpha:g}")
    chances.plot(lead, loss.probabilities(scores)[:, 0])
values.set_xlabel("lead of the true class's score")
values.set_ylabel("loss")
chances.set_xlabel("lead of the true class's score")
chances.set_ylabel("probability of the true class")
figure.legend(*values.get_legend_handles_labels(), loc="outside upper center", ncols=4)
plt.show()
