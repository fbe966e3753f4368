"""
Large C
=======

From C = 1 to 2^14 the penalty vanishes and most solvers slow down. The Newton solver closes the gap at any of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from advcli import AdversarialClassifier

X, y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)
powers = np.arange(0, 15, 2)
fits = [AdversarialClassifier(C=2.0**power, tol=1e-6, solver="newton").fit(X, y) for power in powers]
print([f"{each.certificate_.relative_gap:.0e}" for each in fits])

# %%
plt.plot(powers, [each.certificate_.passes for each in fits], marker="o")
plt.xlabel("log2 C")
plt.ylabel("passes over the data to a relative gap of 1e-6")
plt.ylim(bottom=0)
plt.show()
