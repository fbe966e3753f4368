"""
Several guesses
===============

A row may get K guesses and is right if one of them is its class. `top_k` trains for that. With K = 3 more of these test rows have
their class among three guesses than with `zero_one`, and fewer have it as the first one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from advcli import AdversarialClassifier

X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), train_size=200, random_state=0)
models = {
    "zero_one": AdversarialClassifier("zero_one", C=1e-3),
    "top_k, K = 2": AdversarialClassifier("top_k", loss_options={"K": 2}, C=1e-3),
    "top_k, K = 3": AdversarialClassifier("top_k", loss_options={"K": 3}, C=1e-3),
}
for name, model in models.items():
    order = np.argsort(-model.fit(X, y).decision_function(X_test), axis=1)
    right = [(order[:, :guesses] == y_test[:, None]).any(axis=1).mean() for guesses in range(1, 5)]
    plt.plot(range(1, 5), right, marker="o", label=name)
plt.xticks(range(1, 5))
plt.xlabel("guesses")
plt.ylabel("share of test rows whose class is among them")
plt.legend()
plt.show()
