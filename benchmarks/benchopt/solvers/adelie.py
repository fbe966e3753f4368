import adelie
import numpy as np
from benchmark_utils.rival import LIMIT, Rival


class Solver(Rival):
    """adelie (Yang & Hastie 2024), by an author of glmnet: the multinomial logistic loss with a ridge penalty.

    It divides the loss by the number of classes.
    """

    name = "adelie"
    requirements = ["pip::adelie"]
    models = ("logistic",)
    test_config = {"objective": {"model": "logistic"}}

    def solve(self, problem, tolerance):
        X, k = np.asfortranarray(problem.X), problem.k
        loss = adelie.glm.multinomial(y=np.eye(k)[problem.y], dtype=np.float64)
        path = {"alpha": 0.0, "lmda_path": np.array([problem.lam / k]), "penalty": np.ones(X.shape[1]), "early_exit": False}
        limits = {"tol": tolerance, "irls_tol": tolerance, "max_iters": LIMIT, "irls_max_iters": LIMIT}
        fitted = adelie.grpnet(X=X, glm=loss, intercept=False, progress_bar=False, **path, **limits)
        found = fitted.betas.toarray()  # without a row where the limits ended it
        return {"theta": found[-1].reshape(X.shape[1], k)} if len(found) else problem.start()
