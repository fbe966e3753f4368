from benchmark_utils.rival import LIMIT, Rival
from mord.threshold_based import threshold_fit


class Solver(Rival):
    """mord (Pedregosa): its LogisticAT by L-BFGS-B, whose tolerance its classes do not show."""

    name = "mord"
    requirements = ["pip::mord"]
    models = ("logistic_at",)
    test_config = {"objective": {"model": "logistic_at"}}

    def solve(self, problem, tolerance):
        w, eta = threshold_fit(problem.X, problem.y, 1.0 / problem.C, problem.k, mode="AE", max_iter=LIMIT, tol=tolerance)
        return {"w": w, "eta": eta}
