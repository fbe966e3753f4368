import numpy as np
from benchmark_utils.rival import Rival
from sklearn.svm import SVC


class Solver(Rival):
    """LIBSVM, by scikit-learn's SVC: one classifier for every pair of classes, with a free bias."""

    name = "LIBSVM"
    requirements = ["scikit-learn"]
    models = ("ovo_rbf",)
    test_config = {"objective": {"model": "ovo_rbf"}}

    def solve(self, problem, tolerance):
        k = problem.k
        svc = SVC(C=problem.C, kernel="rbf", gamma=1.0 / problem.X.shape[1], tol=tolerance, cache_size=1000).fit(problem.X, problem.y)
        starts = np.r_[0, np.cumsum(svc.n_support_)]
        theta, sign = np.zeros((problem.n, len(problem.pairs))), -1.0 if k == 2 else 1.0  # of two classes the second is positive
        for at, (a, b) in enumerate(problem.pairs):
            for own, other in ((a, b - 1), (b, a)):
                part = slice(starts[own], starts[own + 1])
                theta[svc.support_[part], at] = sign * svc.dual_coef_[other, part]
        return {"theta": theta, "bias": sign * svc.intercept_}
