"""
Certificates
============

A fit says how far it is from the optimum at most: between its primal and its dual value. A looser fit brackets what a tighter one finds.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from advcli import AdversarialClassifier

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
tolerances = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001)
found = [AdversarialClassifier(C=1.0, tol=tol, solver="dual").fit(X, y).certificate_ for tol in tolerances]
plt.plot(tolerances, [each.primal for each in found], marker="v", label="primal: what the weights reach")
plt.plot(tolerances, [each.dual for each in found], marker="^", label="dual: no weights are below")
plt.xscale("log")
plt.gca().invert_xaxis()
plt.xlabel("relative gap that was asked for")
plt.legend()
plt.show()
print(f"the optimum lies in [{found[-1].dual:.6f}, {found[-1].primal:.6f}]")
