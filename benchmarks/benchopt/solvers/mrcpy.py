from benchmark_utils.rival import LIMIT, Rival
from MRCpy import CMRC


class Solver(Rival):
    """MRCpy (Bondugula et al. 2023): CMRC, the zero-one loss with moments in a box, by Adam; a tolerance t is 100/t steps.

    Its other solver, cvx, asks for a licence of Gurobi and did not end within minutes on 178 rows without one.
    """

    name = "MRCpy"
    requirements = ["pip::mrcpy"]
    models = ("zero_one_box",)
    test_config = {"objective": {"model": "zero_one_box"}}

    def solve(self, problem, tolerance):
        steps = {"max_iters": int(min(100.0 / tolerance, LIMIT)), "random_state": 0}
        fitted = CMRC(loss="0-1", s=1.0, phi="linear", fit_intercept=False, solver="adam", **steps).fit(problem.X, problem.y)
        return {"theta": fitted.mu_.reshape(problem.k, -1).T.copy()}
