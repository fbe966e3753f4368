import os
from pathlib import Path

import numpy as np
from benchopt import BaseDataset

from advcli.data import default_options, load

BUNDLED = ("iris", "wine", "breast_cancer", "digits")
FOLDER = ("vehicle", "segment", "sat", "optdigits")
ORDERED = ("machinecpu", "autompg", "stocks", "abalone")


class Dataset(BaseDataset):
    """Data sets of the paper and of scikit-learn: distinct rows, standardised, all of them; those in ORDERED have ordered classes."""

    name = "stored"
    requirements = ["pip::advcli"]
    parameters = {"name_": [*BUNDLED, *FOLDER, *ORDERED]}
    test_parameters = {"name_": ["iris"]}

    def get_data(self):
        folder = os.environ.get("ADVCLI_DATA")
        if self.name_ not in BUNDLED and folder is None:
            raise ValueError(
                f"{self.name_} is read from the folder that the variable ADVCLI_DATA names; advcli data fetch {self.name_} fills it"
            )
        found = load(default_options(self.name_), Path(folder or "."))
        rows = np.unique(np.column_stack([found.X, found.y]), axis=0)  # programs differ in whether equal rows are one
        X, y = rows[:, :-1], rows[:, -1]
        X = X[:, X.std(axis=0) > 0]
        mix = np.random.default_rng(0).permutation(len(y))  # they came sorted
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        return {"X": np.ascontiguousarray(X[mix]), "y": np.unique(y, return_inverse=True)[1][mix], "ordered": self.name_ in ORDERED}
