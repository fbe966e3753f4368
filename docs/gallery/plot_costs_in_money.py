"""
Costs in money
==============

To miss a faulty part costs 50, to check a good one costs 2, to scrap one costs 10. The matrix itself is what is minimised, rows =
actions, columns = truths.
"""

import matplotlib.pyplot as plt
import numpy as np

from advcli import AdversarialClassifier

random = np.random.default_rng(1)
y = random.choice(3, size=1500, p=[0.8, 0.15, 0.05])  # good, doubtful, faulty
X = random.normal(size=(1500, 2)) + np.array([[0, 0], [1.5, 0], [1.5, 1.5]])[y]
money = np.array([[0.0, 5.0, 50.0], [2.0, 0.0, 5.0], [10.0, 10.0, 0.0]])  # sell, check, scrap
paid = {}
for name, loss in (("zero_one", "zero_one"), ("the costs themselves", money)):
    action = AdversarialClassifier(loss=loss).fit(X[:500], y[:500]).predict(X[500:])
    paid[name] = money[action, y[500:]].mean()
print(paid)

# %%
plt.bar(list(paid), list(paid.values()))
plt.ylabel("paid for a part, on parts that were not seen")
plt.show()
