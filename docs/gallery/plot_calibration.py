"""
Calibration
===========

The distribution that an adversarial loss predicts by is a strategy, no estimate of chances. Calibration makes one of the potentials.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss

from advcli import AdversarialClassifier, metrics

random = np.random.default_rng(0)
y = random.integers(4, size=6000)
X = random.normal(size=(6000, 2)) + 1.2 * np.array([[0, 0], [0, 2], [2, 0], [2, 2]])[y]
plt.plot([0, 1], [0, 1], color="black", linestyle=":")
for method in (None, "vector", "temperature", "sigmoid", "isotonic"):
    P = AdversarialClassifier(calibrate=method).fit(X[:1000], y[:1000]).predict_proba(X[1000:])
    rows, confidence, accuracy = metrics.reliability(y[1000:], P)
    plt.plot(confidence, accuracy, marker="o", label=f"{method or 'the strategy'}: log-loss {log_loss(y[1000:], P):.2f}")
plt.xlabel("probability of the likeliest class")
plt.ylabel("how often it is the true one")
plt.legend()
plt.show()
