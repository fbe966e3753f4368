import numpy as np
from benchmark_utils.layouts import extended, halves, unextended
from benchmark_utils.rival import LIMIT, Rival
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC


class Solver(Rival):
    """LinearSVC, which is LIBLINEAR with more iterations allowed, and LogisticRegression."""

    name = "scikit-learn"
    requirements = ["scikit-learn"]
    models = ("cs", "ova", "logistic", "red_th")
    parameters = {"solver": ["lbfgs", "newton-cg", "newton-cholesky", "saga"]}
    test_parameters = {"solver": ["lbfgs"]}

    def skip(self, name, problem):
        if name != "logistic" and self.solver != "lbfgs":
            return True, f"{name} has one solver"
        return super().skip(name, problem)

    def solve(self, problem, tolerance):
        X, y, C = problem.X, problem.y, problem.C
        if self.model == "logistic":
            options = {"solver": self.solver, "tol": tolerance, "max_iter": LIMIT, "fit_intercept": False, "random_state": 0}
            if problem.k == 2:
                return halves(LogisticRegression(C=2.0 * C, **options).fit(X, y).coef_[0])
            return {"theta": LogisticRegression(C=C, **options).fit(X, y).coef_.T}
        options = {"loss": "hinge", "fit_intercept": False, "tol": tolerance, "max_iter": LIMIT, "random_state": 0}
        if self.model == "cs":
            if problem.k == 2:
                return halves(LinearSVC(C=2.0 * C, **options).fit(X, y).coef_[0])
            return {"theta": LinearSVC(C=C, multi_class="crammer_singer", **options).fit(X, y).coef_.T}
        if self.model == "ova":
            coef = LinearSVC(C=C, **options).fit(X, y).coef_
            return {"theta": np.vstack([-coef, coef]).T if problem.k == 2 else coef.T}
        X, y = extended(problem)
        v = LinearSVC(C=C, **options).fit(X, y).coef_[0]
        return unextended(problem, v)
