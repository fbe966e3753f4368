import numpy as np
from benchmark_utils.rival import LIMIT, Rival
from cyanure.estimators import Classifier


class Solver(Rival):
    """Cyanure (Mairal 2019): of its losses the multinomial logistic one is here; it has no hinge."""

    name = "Cyanure"
    requirements = ["pip::cyanure"]
    models = ("logistic",)
    test_config = {"objective": {"model": "logistic"}}

    def skip(self, name, problem):
        if name == "logistic" and problem.k == 2:
            return True, "of two classes it minimises a logistic loss of one row of weights"
        return super().skip(name, problem)

    def solve(self, problem, tolerance):
        options = {"fit_intercept": False, "multi_class": "multinomial", "max_iter": LIMIT, "n_threads": 1, "verbose": False}
        fitted = Classifier(loss="logistic", penalty="l2", lambda_1=problem.lam, tol=tolerance, **options).fit(problem.X, problem.y)
        return {"theta": np.array(fitted.coef_)}  # (d, k)
