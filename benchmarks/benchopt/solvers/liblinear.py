import numpy as np
from benchmark_utils.layouts import extended, halves, unextended
from benchmark_utils.rival import Rival
from liblinear.liblinearutil import parameter, train
from liblinear.liblinearutil import problem as rows_of


class Solver(Rival):
    """LIBLINEAR itself: -s 4 (Crammer-Singer) and -s 3 (hinge), whose limits of iterations are its own."""

    name = "LIBLINEAR"
    requirements = ["pip::liblinear-official"]
    models = ("cs", "ova", "red_th")

    def solve(self, problem, tolerance):
        if self.model == "red_th":
            rows, signs = extended(problem)
            return unextended(problem, weights(rows, signs, problem.C, tolerance))
        X, y, C, k = problem.X, problem.y, problem.C, problem.k
        if self.model == "ova":
            return {"theta": np.column_stack([weights(X, np.where(y == label, 1, -1), C, tolerance) for label in range(k)])}
        if k == 2:  # the rows are -w/2 and w/2, whose norm is half of |w|^2
            return halves(weights(X, np.where(y == 1, 1, -1), 2.0 * C, tolerance))
        fitted = train(rows_of(y, X), parameter(f"-s 4 -c {C} -e {tolerance} -B -1 -q"))
        found = np.array(fitted.w[: X.shape[1] * k]).reshape(X.shape[1], k)
        return {"theta": np.ascontiguousarray(found[:, np.argsort(fitted.get_labels())])}


def weights(X, signs, C, tolerance):
    """Return the weights of one binary problem, of a positive score for +1."""
    fitted = train(rows_of(signs, X), parameter(f"-s 3 -c {C} -e {tolerance} -B -1 -q"))
    found = np.array(fitted.w[: X.shape[1]])
    return found if fitted.get_labels()[0] == 1 else -found
