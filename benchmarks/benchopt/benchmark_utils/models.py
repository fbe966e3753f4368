"""The problems that solvers race on: the objective by its formula, and a lower bound of its optimum.

With lambda = 1/(n C), the rows of X ending in a constant 1 and f = x'Theta, where scores are linear:

    cs, ww, llw, zero_one   lambda/2 |Theta|^2 + mean of the surrogate; their bounds are those of `advcli certify`
    zero_one_box            sum of t |Theta| + mean of zero_one, t = standard errors of the moments (Mazuelas et al. 2022, s = 1)
    ova                     lambda/2 |Theta|^2 + mean over rows of the sum over classes of [1 - s f]_+
    ovo_rbf                 the same over pairs of classes, a Gaussian kernel and free biases: LIBSVM's
    logistic                lambda/2 |Theta|^2 + mean of log sum exp f - f_y
    red_th                  lambda/2 (|w|^2 + |theta|^2 + b^2) + mean over rows of the sum over thresholds of [1 - s (g - eta)]_+,
                            eta = theta - b
    red_th_rbf              the same with a Gaussian kernel and without a penalty of b (Li & Lin 2007)
    svorim_rbf, svorex_rbf  lambda/2 |w|^2 + the same sum, or its terms next to the class (Chu & Keerthi 2007); K + 0.001 I
    logistic_at             lambda/2 |w|^2 + mean over rows of the sum over thresholds of log(1 + exp(-s (g - eta))) (Rennie & Srebro 2005)

A Gaussian kernel is exp(-|x - x'|^2 / d), without a constant column. The bound is the dual value of our own fit, ten times as tight as the
goal or more.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp
from sklearn.metrics.pairwise import rbf_kernel

from advcli import AdversarialClassifier, OneVersusAllClassifier, OneVersusOneClassifier, OrdinalClassifier, SurrogateClassifier
from advcli.evaluation.foreign_weights import Judge

GOAL = 1e-3
"""Relative gap at which weights count as optimal."""
BOUND = 1e-5
"""Relative gap of the fit whose dual value is the bound."""
PASSES = 1e6
"""Passes that this fit may take."""


class Model:
    """A problem on rows X (n, d), codes y (n,) and C; a point is a dict of arrays, which `primal` takes by their names."""

    ordinal = False
    kernel = False
    surrogate = False  # whether advcli has several solvers for it
    least = 2  # classes

    def __init__(self, X, y, C):
        self.y, self.C, self.n, self.k = y, float(C), len(y), int(y.max()) + 1
        self.X = X if self.kernel else np.ascontiguousarray(np.hstack([X, np.ones((len(X), 1))]))
        self.lam = 1.0 / (self.n * self.C)
        self._bound = None

    def gram(self):
        """Return the kernel matrix."""
        return rbf_kernel(self.X, gamma=1.0 / self.X.shape[1])

    def own(self, tol, **options):
        """Return our learner of this problem."""
        raise NotImplementedError

    def rows(self):
        """Return what our learner is fitted to."""
        return self.gram() if self.kernel else self.X

    def point(self, fitted):
        """Return the point of our fitted learner."""
        return {"theta": np.ascontiguousarray(fitted.theta_)}

    def primal(self, theta):
        """Return the objective of a point."""
        raise NotImplementedError

    def start(self):
        """Return a point with nothing learned."""
        return {"theta": np.zeros((self.X.shape[1], self.k))}

    def bound(self):
        """Return a lower bound of the optimum."""
        if self._bound is None:
            self._bound = self.own(BOUND, max_passes=PASSES).fit(self.rows(), self.y).certificate_.dual
        return self._bound

    def judge(self, point):
        """Return the objective of a point and the bound."""
        return self.primal(**point), self.bound()


class Surrogate(Model):
    """A surrogate loss with a ridge penalty, judged as `advcli certify` does."""

    surrogate = True
    loss = "zero_one"
    _judge = None

    def own(self, tol, **options):
        return SurrogateClassifier(self.loss, C=self.C, tol=tol, fit_intercept=False, **options)

    def judge(self, point):
        if self._judge is None:
            self._judge = Judge(self.own(BOUND, max_passes=PASSES), self.X, self.y)
        found = self._judge(point["theta"].T)
        return found.primal, found.dual

    def primal(self, theta):
        F = self.X @ theta
        own = F[np.arange(self.n), self.y][:, None]
        losses = self.losses(F, own, np.arange(self.k) != self.y[:, None])
        return self.penalty(theta) + losses.mean()

    def penalty(self, theta):
        """Return the penalty of the weights."""
        return 0.5 * self.lam * np.vdot(theta, theta)


class ZeroOne(Surrogate):
    """The adversarial zero-one loss: max over sets of classes with the label or without it of (sum of f_j - f_y + size - 1) / size."""

    def losses(self, F, own, off):
        best = -np.sort(-(F - own), axis=1)
        sizes = np.arange(1, self.k + 1)
        return ((best.cumsum(axis=1) + sizes - 1) / sizes).max(axis=1)


class CrammerSinger(Surrogate):
    """The largest of the relative hinges."""

    loss = "cs"

    def losses(self, F, own, off):
        return np.maximum(0.0, np.where(off, 1.0 + F - own, 0.0)).max(axis=1)


class WestonWatkins(Surrogate):
    """The sum of the relative hinges."""

    loss = "ww"

    def losses(self, F, own, off):
        return np.where(off, np.maximum(0.0, 1.0 + F - own), 0.0).sum(axis=1)


class LeeLinWahba(Surrogate):
    """The sum of hinges [1 + f_j]_+ of the wrong classes, of centred scores."""

    loss = "llw"

    def losses(self, F, own, off):
        return np.where(off, np.maximum(0.0, 1.0 + F - F.mean(axis=1, keepdims=True)), 0.0).sum(axis=1)


class ZeroOneBox(ZeroOne):
    """The adversarial zero-one loss with the moments in a box of one standard error each; C plays no part."""

    surrogate = False
    least = 3  # of two classes MRCpy holds differences of moments
    bound, judge = Model.bound, Model.judge

    def own(self, tol, **options):
        return AdversarialClassifier(
            "zero_one", features_options={"moments": "box", "tolerance": 1.0}, tol=tol, fit_intercept=False, **options
        )

    def penalty(self, theta):
        chosen = np.arange(self.k) == self.y[:, None]
        means = self.X.T @ chosen / self.n
        errors = np.sqrt((self.X**2).T @ chosen / self.n - means**2) / np.sqrt(self.n)
        return np.vdot(errors, np.abs(theta))


class OneVersusAll(Model):
    """A hinge for every class, each a binary problem."""

    def own(self, tol, **options):
        return OneVersusAllClassifier(C=self.C, tol=tol, features="precomputed" if self.kernel else "linear", **options)

    def rows(self):
        return self.X[:, :-1]  # it appends the constant itself

    def primal(self, theta):
        signs = np.where(np.arange(self.k) == self.y[:, None], 1.0, -1.0)
        return 0.5 * self.lam * np.vdot(theta, theta) + np.maximum(0.0, 1.0 - signs * (self.X @ theta)).sum() / self.n


class OneVersusOneKernel(Model):
    """A binary problem for every pair of classes, the first one's rows positive; a point holds coefficients (n, pairs) and biases."""

    kernel = True

    def __init__(self, X, y, C):
        super().__init__(X, y, C)
        self.pairs = [(a, b) for a in range(self.k) for b in range(a + 1, self.k)]

    def own(self, tol, **options):
        return OneVersusOneClassifier(C=self.C, tol=tol, features="precomputed", bias="free", **options)

    def point(self, fitted):
        return {"theta": fitted.theta_[:-1].copy(), "bias": fitted.theta_[-1].copy()}

    def start(self):
        return {"theta": np.zeros((self.n, len(self.pairs))), "bias": np.zeros(len(self.pairs))}

    def primal(self, theta, bias):
        F = self.gram() @ theta
        total = 0.5 * np.vdot(theta, F) / self.C
        for at, (a, b) in enumerate(self.pairs):
            rows = (self.y == a) | (self.y == b)
            signs = np.where(self.y[rows] == a, 1.0, -1.0)
            total += np.maximum(0.0, 1.0 - signs * (F[rows, at] + bias[at])).sum()
        return total / self.n


class Logistic(Surrogate):
    """Multinomial logistic regression."""

    surrogate = False
    loss = "entropy"

    def losses(self, F, own, off):
        return logsumexp(F, axis=1) - own[:, 0]


class Thresholds(Model):
    """A direction and thresholds; a point holds w, or coefficients of the rows, and thresholds eta."""

    ordinal = True
    method = "red_th"
    ridge = 0.0
    shares = None  # the penalty's M = I - 11' / (m + shares) of the thresholds

    def __init__(self, X, y, C):
        super().__init__(X, y, C)
        self.X = X
        self.m = self.k - 1
        self.signs = np.where(y[:, None] > np.arange(self.m), 1.0, -1.0)
        self.weight = np.ones((self.n, self.m))

    def gram(self):
        return super().gram() + self.ridge * np.eye(self.n)

    def own(self, tol, **options):
        bias = {} if self.shares is None else {"bias": "regularised" if self.shares else "free"}
        features = "precomputed" if self.kernel else "linear"
        return OrdinalClassifier(method=self.method, C=self.C, tol=tol, features=features, **bias, **options)

    def point(self, fitted):
        return {"w": fitted.coef_[0].copy(), "eta": fitted.thresholds_.copy()}

    def start(self):
        return {"w": np.zeros(self.n if self.kernel else self.X.shape[1]), "eta": np.zeros(self.m)}

    def primal(self, w, eta):
        g = (self.gram() if self.kernel else self.X) @ w
        square = w @ (g if self.kernel else w)
        if self.shares is not None:
            square += eta @ eta - eta.sum() ** 2 / (self.m + self.shares)
        return 0.5 * self.lam * square + self.losses(g, eta).sum() / self.n

    def losses(self, g, eta):
        """Return the terms (n, m) of scores and thresholds."""
        return self.weight * np.maximum(0.0, 1.0 - self.signs * (g[:, None] - eta))


class Reduction(Thresholds):
    """The reduction to one binary problem, everything penalised."""

    shares = 1


class ReductionKernel(Thresholds):
    """The reduction with a kernel, its bias free."""

    kernel, shares = True, 0


class Implicit(Thresholds):
    """Every threshold's hinge for every row."""

    kernel, method, ridge = True, "svorim", 1e-3

    def gram(self):
        return Model.gram(self) + self.ridge * np.eye(self.n)


class Explicit(Implicit):
    """The hinges next to the class, thresholds in order."""

    method = "svorex"

    def __init__(self, X, y, C):
        super().__init__(X, y, C)
        j = np.arange(self.m)
        self.weight = ((j == y[:, None] - 1) | (j == y[:, None])).astype(float)

    def primal(self, w, eta):
        return super().primal(w, np.maximum.accumulate(eta))  # in order, as the model holds them


class LogisticThresholds(Thresholds):
    """Every threshold's logistic loss for every row."""

    method = "at"

    def own(self, tol, **options):
        return super().own(tol, alpha=1.0, **options)

    def losses(self, g, eta):
        return np.logaddexp(0.0, -self.signs * (g[:, None] - eta))


MODELS = {
    "cs": CrammerSinger,
    "ww": WestonWatkins,
    "llw": LeeLinWahba,
    "zero_one": ZeroOne,
    "zero_one_box": ZeroOneBox,
    "ova": OneVersusAll,
    "ovo_rbf": OneVersusOneKernel,
    "logistic": Logistic,
    "red_th": Reduction,
    "red_th_rbf": ReductionKernel,
    "svorim_rbf": Implicit,
    "svorex_rbf": Explicit,
    "logistic_at": LogisticThresholds,
}
