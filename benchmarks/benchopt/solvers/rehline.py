import numpy as np
from benchmark_utils.layouts import extended, halves, unextended
from benchmark_utils.rival import LIMIT, Rival
from rehline import ReHLine_solver


class Solver(Rival):
    """ReHLine (Dai & Qiu 2023): sums of hinges of one score, so no Crammer-Singer of more than two classes."""

    name = "ReHLine"
    requirements = ["pip::rehline"]
    models = ("cs", "ova", "red_th")
    test_config = {"objective": {"model": "ova"}}

    def skip(self, name, problem):
        if name == "cs" and problem.k > 2:
            return True, "its losses are of one score"
        return super().skip(name, problem)

    def solve(self, problem, tolerance):
        if self.model == "red_th":
            rows, signs = extended(problem)
            return unextended(problem, weights(rows, signs, problem.C, tolerance))
        if self.model == "cs":
            return halves(weights(problem.X, np.where(problem.y == 1, 1.0, -1.0), 2.0 * problem.C, tolerance))
        signs = [np.where(problem.y == label, 1.0, -1.0) for label in range(problem.k)]
        return {"theta": np.column_stack([weights(problem.X, each, problem.C, tolerance) for each in signs])}


def weights(X, signs, C, tolerance):
    """Return the weights of one binary problem: hinges [u z + v]_+ with u = -C s, v = C."""
    U, V = -C * signs[None], np.full((1, len(signs)), C)
    return np.asarray(ReHLine_solver(X=X, U=U, V=V, tol=tolerance, max_iter=LIMIT, verbose=0).beta)
