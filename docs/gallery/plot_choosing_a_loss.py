"""
Choosing a loss
===============

Three classes, none of which has a majority: the Crammer-Singer hinge gives all classes the same score, the adversarial zero-one loss puts
the likeliest in front. The expected surrogate along the line of scores (t, 0, 0), at class probabilities 0.4, 0.35, 0.25:
"""

import matplotlib.pyplot as plt
import numpy as np

from advcli.losses import make_loss

probabilities = np.array([0.4, 0.35, 0.25])
line = np.linspace(-0.5, 2.0, 101)
for name in ("zero_one", "cs", "ww", "llw"):
    loss = make_loss(name, 3)
    risk = [probabilities @ loss.value(np.tile([t - t / 3, -t / 3, -t / 3], (3, 1)), np.arange(3)) for t in line]
    plt.plot(line, np.array(risk) - min(risk), label=name)
plt.xlabel("lead of the likeliest class")
plt.ylabel("expected surrogate above its least value here")
plt.ylim(0, 0.6)
plt.legend()
plt.show()
