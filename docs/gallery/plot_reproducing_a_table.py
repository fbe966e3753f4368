"""
Reproducing a table
===================

A preset holds all that a table is made from. Here the quick one with fewer splits; the presets of the papers are listed by ``advcli
experiment list``.
"""

import tempfile

import matplotlib.pyplot as plt

from advcli.evaluation import sweep
from advcli.reports import comparison_table, summarise

words = "dataset=iris,wine loss=zero_one,cs,ww,llw hyper.C=1 protocol.n_splits=5"
with tempfile.TemporaryDirectory() as folder:
    rows = sweep(words, folder, workers=1, quiet=True)
summary = summarise(rows)
print(comparison_table(summary))

# %%
shown = summary[summary["metric"] == "error"]
for dataset, part in shown.groupby("dataset"):
    plt.errorbar(part["method"], 100 * (1 - part["mean"]), yerr=100 * part["std"], marker="o", linestyle="none", capsize=3, label=dataset)
plt.ylabel("accuracy in percent, mean and deviation over the splits")
plt.legend()
plt.show()
