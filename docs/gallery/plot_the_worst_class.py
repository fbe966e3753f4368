"""
The worst class
===============

Rare classes lose when every error costs the same. `MetricClassifier("worst_class")` maximises the least recall: it mixes a few
classifiers, each for its own costs. The bars show how much of each class is predicted right on test rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split

from advcli import AdversarialClassifier, MetricClassifier, SurrogateClassifier

X, y = make_classification(4000, 6, n_informative=4, n_classes=3, weights=[0.8, 0.15], random_state=0)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
models = {
    "zero_one": AdversarialClassifier("zero_one"),
    "entropy": SurrogateClassifier("entropy"),
    "metric, worst_class": MetricClassifier("worst_class"),
    "metric, macro_f1": MetricClassifier("macro_f1"),
}
for place, (name, model) in enumerate(models.items()):
    recalls = recall_score(y_test, model.fit(X, y).predict(X_test), average=None)
    plt.bar(np.arange(3) + 0.2 * (place - 1.5), recalls, 0.2, label=name)
plt.xticks(range(3), [f"class {label}\n{share:.0%} of the rows" for label, share in enumerate(np.bincount(y_test) / len(y_test))])
plt.ylabel("share that is predicted right")
plt.legend()
plt.show()
