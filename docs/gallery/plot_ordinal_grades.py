"""
Ordinal grades
==============

Five grades along one direction. One weight vector and four thresholds, learned together, cut the line into grades.
"""

import matplotlib.pyplot as plt
import numpy as np

from advcli import OrdinalClassifier

random = np.random.default_rng(0)
X = random.normal(size=(400, 3))
grade = np.digitize(X @ [1.0, 0.5, -0.5] + 0.3 * random.normal(size=400), [-1.2, -0.4, 0.4, 1.2])
model = OrdinalClassifier(method="at").fit(X, grade)
print(f"relative gap {model.certificate_.relative_gap:.1e}, mean error {abs(model.predict(X) - grade).mean():.2f} grades")

# %%
# The rows on the line, by their grade, and the thresholds.
for k in range(5):
    plt.hist(model.latent(X[grade == k]), bins=25, alpha=0.6, label=f"grade {k}")
for threshold in model.thresholds_:
    plt.axvline(threshold, color="black", linestyle=":")
plt.xlabel("score")
plt.legend()
plt.show()
