"""
A sweep in a notebook
=====================

Cells are words as on the command line; rows come back as a data frame, and the same call again computes only what is missing.
"""

import tempfile

import matplotlib.pyplot as plt

from advcli.evaluation import sweep

cells = [f"dataset=iris loss=zero_one hyper.C={C} protocol.n_splits=5" for C in (0.01, 0.1, 1, 10, 100)]
with tempfile.TemporaryDirectory() as folder:
    rows = sweep(cells, folder, workers=1, quiet=True)
    again = sweep(cells, folder, workers=1, quiet=True)
print(f"{len(rows)} rows; the same again: {rows['value'].equals(again['value'])}")

# %%
means = rows[rows["metric"] == "error"].groupby("C")["value"].mean()
plt.plot(means.index, means, marker="o")
plt.xscale("log")
plt.xlabel("C")
plt.ylabel("mean error over five splits")
plt.show()
