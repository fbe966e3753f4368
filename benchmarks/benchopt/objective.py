from benchmark_utils.models import MODELS
from benchopt import BaseObjective

KERNEL_ROWS = 3000


class Objective(BaseObjective):
    """Regularised empirical risk; its value is the relative gap between the objective of a point and a proved lower bound."""

    name = "Certified risk"
    min_benchopt_version = "1.7"
    requirements = ["pip::advcli"]
    parameters = {"model": list(MODELS), "C": [2.0**-4, 1.0, 2.0**4, 2.0**9, 2.0**14]}
    test_dataset_name = "simulated"
    test_config = {"model": "cs", "C": 1.0}

    def skip(self, X, y, ordered):
        model = MODELS[self.model]
        if model.ordinal and not ordered:
            return True, f"{self.model} is for ordered classes"
        if model.kernel and len(y) > KERNEL_ROWS:
            return True, f"a kernel matrix of more than {KERNEL_ROWS} rows"
        if len(set(y.tolist())) < model.least:
            return True, f"{self.model} needs {model.least} classes"
        if self.model == "zero_one_box" and self.C != 1.0:
            return True, "C plays no part in zero_one_box, which runs at C=1 alone"
        return False, None

    def set_data(self, X, y, ordered):
        self.problem = MODELS[self.model](X, y, self.C)

    def get_objective(self):
        return {"name": self.model, "problem": self.problem}

    def evaluate_result(self, point, processor):
        primal, bound = self.problem.judge(point)
        return {"value": float((primal - bound) / primal), "primal": float(primal), "bound": float(bound), "processor": processor}

    def get_one_result(self):
        return {"point": self.problem.start(), "processor": 0.0}
