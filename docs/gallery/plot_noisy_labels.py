"""
Noisy labels
============

A third of the labels of each class read as the next one. The matrix of this noise is known, and corrects the loss.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from advcli import AdversarialClassifier, UMAClassifier

X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X / 16.0, y, test_size=0.5, random_state=0, stratify=y)
random = np.random.default_rng(0)
rate = 0.35
seen = np.where(random.uniform(size=len(y)) < rate, (y + 1) % 10, y)
confusion = (1 - rate) * np.eye(10) + rate * np.roll(np.eye(10), 1, axis=0)  # P(label p is seen | the true class is q)
scores = {
    "clean labels": AdversarialClassifier().fit(X, y).score(X_new, y_new),
    "noisy labels": AdversarialClassifier().fit(X, seen).score(X_new, y_new),
    "UMA with the matrix": UMAClassifier(confusion=confusion).fit(X, seen).score(X_new, y_new),
}
print(scores)

# %%
plt.barh(list(scores), list(scores.values()))
plt.xlabel("accuracy on clean rows")
plt.xlim(0.5, 1.0)
plt.tight_layout()
plt.show()
