"""
Abstaining with a guarantee
===========================

A threshold from held-out rows: with confidence 90 % at most 15 % of the answered rows are wrong, whatever the model is.
"""

import matplotlib.pyplot as plt
import numpy as np

from advcli import AbstainingClassifier

random = np.random.default_rng(0)
y = random.integers(4, size=3000)
X = random.normal(size=(3000, 2)) + 1.2 * np.array([[0, 0], [0, 2], [2, 0], [2, 2]])[y]
model = AbstainingClassifier("cs", alpha=0.3).fit(X[:1000], y[:1000])
found = model.calibrate(X[1000:2000], y[1000:2000], epsilon=0.15, delta=0.1)
print(found)

# %%
# Risk over coverage on rows that neither the fit nor the threshold has seen.
curve = model.risk_coverage(X[2000:], y[2000:])
plt.step(curve.coverage, curve.risk, where="post")
plt.axhline(0.15, color="black", linestyle=":")
plt.xlabel("coverage: share of rows that are answered")
plt.ylabel("risk: share of these that are wrong")
plt.ylim(bottom=0)
plt.show()
