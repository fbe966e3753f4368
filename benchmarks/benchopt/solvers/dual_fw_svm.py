import numpy as np
from benchmark_utils.rival import LIMIT, Rival
from dual_fw_svm import BlockCoordinateFrankWolfeSVM, MulticlassFrankWolfeSVM


class Solver(Rival):
    """Frank-Wolfe on the dual of the multiclass SVMs, by all rows at once or by one row at a time."""

    name = "dual-fw-svm"
    requirements = ["pip::dual-fw-svm"]
    parameters = {"rows": ["all", "one"]}
    endless = True  # one row at a time may take minutes within its limit
    models = ("cs", "ww")

    def solve(self, problem, tolerance):
        # one step of one row is an iteration there
        kind, steps = (MulticlassFrankWolfeSVM, LIMIT) if self.rows == "all" else (BlockCoordinateFrankWolfeSVM, LIMIT * problem.n)
        fitted = kind(C=problem.C, formulation=self.model, max_iter=steps, tol=tolerance, record_every=problem.n).fit(problem.X, problem.y)
        return {"theta": np.ascontiguousarray(fitted.coef_.T)}
