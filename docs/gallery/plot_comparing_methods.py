"""
Comparing methods
=================

Twenty random splits of one data set overlap: the plain t-test finds differences between methods that are equally good. The corrected one
keeps its level, and the Bayesian one says how likely a difference matters.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from advcli import AdversarialClassifier
from advcli.statistics import tests

X, y = load_wine(return_X_y=True)
splits = ShuffleSplit(20, test_size=0.3, random_state=0)
scores = {
    loss: 1 - cross_val_score(make_pipeline(StandardScaler(), AdversarialClassifier(loss, C=0.01)), X, y, cv=splits)
    for loss in ("zero_one", "llw")
}
a, b = scores.values()
print(f"plain t-test p = {tests.paired_t(a, b).p_value:.4f}")
print(f"corrected      p = {tests.corrected_t(a, b, n_train=124, n_test=54).p_value:.4f}")
print(tests.bayesian_correlated_t(a, b, n_train=124, n_test=54, rope=0.01))

# %%
plt.scatter(a, b, alpha=0.5)
plt.plot([0, max(a.max(), b.max())], [0, max(a.max(), b.max())], color="black", linestyle=":")
plt.xlabel("error of zero_one on a split")
plt.ylabel("error of llw on the same split")
plt.title(f"mean difference {np.mean(a - b):+.3f}")
plt.show()
