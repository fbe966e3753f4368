import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Points in a space, cut into classes along one noisy direction."""

    name = "simulated"
    requirements = []
    parameters = {"n, d, k": [(2000, 20, 5)], "ordered": [True]}
    test_parameters = {"n, d, k": [(80, 3, 3)]}

    def get_data(self):
        random = np.random.default_rng(0)
        X = random.normal(size=(self.n, self.d))
        line = X @ random.normal(size=self.d) + 0.5 * np.sqrt(self.d) * random.normal(size=self.n)
        y = np.digitize(line, np.quantile(line, np.arange(1, self.k) / self.k))
        return {"X": X, "y": y, "ordered": self.ordered}
