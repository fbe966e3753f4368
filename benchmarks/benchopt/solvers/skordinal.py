import numpy as np
from benchmark_utils.rival import LIMIT, Rival
from skordinal.classifiers import REDSVM, SVOR, LogisticAT


class Solver(Rival):
    """skordinal: Chu's C program, Lin's reduction over LIBSVM, and a logistic model by L-BFGS."""

    name = "skordinal"
    requirements = ["pip::skordinal"]
    models = ("svorim_rbf", "svorex_rbf", "red_th_rbf", "logistic_at")
    endless = True  # at C = 2^14 on autompg its C program takes no signal
    test_config = {"objective": {"model": "svorim_rbf"}}

    def solve(self, problem, tolerance):
        X, y, C = problem.X, problem.y, problem.C
        if self.model == "logistic_at":
            fitted = LogisticAT(alpha=1.0 / C, tol=tolerance, max_iter=LIMIT).fit(X, y)
            return {"w": np.ravel(fitted.coef_).copy(), "eta": np.asarray(fitted.thresholds_).copy()}
        options = {"C": C, "gamma": 1.0 / X.shape[1], "kernel": "rbf", "tol": tolerance}
        if self.model == "red_th_rbf":
            fitted = REDSVM(**options).fit(X, y)
            w = np.zeros(problem.n)
            np.add.at(w, places(X, fitted.model_["SV"]), np.ravel(fitted.model_["sv_coef"]))
            return {"w": w, "eta": np.asarray(fitted.thresholds_) + fitted.model_["rho"][0]}  # the bias stands in its scores
        fitted = SVOR(constraints="implicit" if self.model == "svorim_rbf" else "explicit", **options).fit(X, y)
        return {"w": np.asarray(fitted.model_["alpha"], dtype=float), "eta": fitted.thresholds_.copy()}


def places(X, rows):
    """Return which row of X each support vector, a list of indices and values, is; of rows that differ by their labels alone, one."""
    at = {row.tobytes(): place for place, row in enumerate(np.ascontiguousarray(X))}
    found = np.zeros((len(rows), X.shape[1]))
    for row, entries in zip(found, rows, strict=True):
        for entry in entries:
            row[entry["index"] - 1] = entry["value"]
    return [at[row.tobytes()] for row in found]
