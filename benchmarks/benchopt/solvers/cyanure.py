import numpy as np
from benchmark_utils.layouts import halves
from benchmark_utils.rival import LIMIT, Rival
from cyanure.estimators import Classifier


class Solver(Rival):
    """Cyanure (Mairal 2019): of its losses the multinomial logistic one is here; it has no hinge."""

    name = "Cyanure"
    requirements = ["pip::cyanure"]
    models = ("logistic",)
    test_config = {"objective": {"model": "logistic"}}

    def solve(self, problem, tolerance):
        options = {"fit_intercept": False, "multi_class": "multinomial", "max_iter": LIMIT, "n_threads": 1, "verbose": False}
        lam = 0.5 * problem.lam if problem.k == 2 else problem.lam
        fitted = Classifier(loss="logistic", penalty="l2", lambda_1=lam, tol=tolerance, **options).fit(problem.X, problem.y)
        return halves(np.ravel(fitted.coef_)) if problem.k == 2 else {"theta": np.array(fitted.coef_)}  # (d, k)
