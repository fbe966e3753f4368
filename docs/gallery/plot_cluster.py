"""
A cluster
=========

The same command runs on one core, on all of them, and on a cluster; the rows are the same, bit for bit. With Slurm it is::

    advcli -m dataset=iris,wine loss=zero_one,cs hydra/launcher=slurm

Here two processes play the cluster.
"""

import tempfile

import matplotlib.pyplot as plt

from advcli.evaluation import sweep

if __name__ == "__main__":
    words = "dataset=iris,wine loss=zero_one,cs hyper.C=1 protocol.n_splits=5"
    found = []
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            found.append(sweep(words, folder, workers=workers, quiet=True))
    print("the same rows:", found[0]["value"].equals(found[1]["value"]))

    fits = found[0][found[0]["metric"] == "error"]
    plt.scatter(fits["dataset"] + " " + fits["loss"], fits["relative_gap"], alpha=0.5)
    plt.axhline(1e-3, color="black", linestyle=":")
    plt.yscale("log")
    plt.ylabel("relative gap of every fit, wherever it ran")
    plt.show()
