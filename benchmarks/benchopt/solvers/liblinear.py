import numpy as np
from benchmark_utils.layouts import extended, halves, unextended
from benchmark_utils.rival import Rival
from liblinear.liblinearutil import parameter, train
from liblinear.liblinearutil import problem as rows_of


class Solver(Rival):
    """LIBLINEAR itself: -s 4 (Crammer-Singer), -s 3 (hinge) and, of two classes, -s 7 (logistic); its limits of iterations are its own."""

    name = "LIBLINEAR"
    requirements = ["pip::liblinear-official"]
    models = ("cs", "logistic", "ova", "red_th")

    def skip(self, name, problem):
        if name == "logistic" and problem.k > 2:
            return True, "of several classes it has one logistic problem for each"
        return super().skip(name, problem)

    def solve(self, problem, tolerance):
        if self.model == "red_th":
            rows, signs = extended(problem)
            return unextended(problem, weights(rows, signs, problem.C, tolerance))
        X, y, C, k = problem.X, problem.y, problem.C, problem.k
        if self.model == "ova":
            return {"theta": np.column_stack([weights(X, np.where(y == label, 1, -1), C, tolerance) for label in range(k)])}
        if k == 2:
            return halves(weights(X, np.where(y == 1, 1, -1), 2.0 * C, tolerance, 7 if self.model == "logistic" else 3))
        fitted = train(rows_of(y, X), parameter(f"-s 4 -c {C} -e {tolerance} -B -1 -q"))
        found = np.array(fitted.w[: X.shape[1] * k]).reshape(X.shape[1], k)
        return {"theta": np.ascontiguousarray(found[:, np.argsort(fitted.get_labels())])}


def weights(X, signs, C, tolerance, loss=3):
    """Return the weights of one binary problem, of a positive score for +1."""
    fitted = train(rows_of(signs, X), parameter(f"-s {loss} -c {C} -e {tolerance} -B -1 -q"))
    found = np.array(fitted.w[: X.shape[1]])
    return found if fitted.get_labels()[0] == 1 else -found
