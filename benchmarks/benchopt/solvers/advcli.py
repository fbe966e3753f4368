from benchmark_utils.models import MODELS, PASSES
from benchmark_utils.rival import Rival

SECONDS = 30.0  # of a run


class Solver(Rival):
    """This library; `auto` chooses, the others are for the surrogates."""

    name = "advcli"
    requirements = ["pip::advcli"]
    models = tuple(MODELS)
    parameters = {"solver": ["auto", "dual", "newton", "lbfgs"]}
    test_parameters = {"solver": ["auto"]}

    def skip(self, name, problem):
        if self.solver != "auto" and not problem.surrogate:
            return True, f"{name} has one solver"
        return super().skip(name, problem)

    def solve(self, problem, tolerance):
        # ascent asked for by name has passes for minutes at large C
        options = {"solver": self.solver, "max_seconds": SECONDS} if problem.surrogate else {}
        # the goal is below 0.1 and 0.01; its own certificate tells when it is reached
        return problem.point(problem.own(tolerance, max_passes=PASSES, **options).fit(problem.rows(), problem.y))
