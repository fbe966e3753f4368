"""Slow and obviously right: enumeration, exact rational arithmetic, general linear and conic programs.

Nothing here uses a formula of advcli, so that tests can hold the package to it. Labels are 0-based, loss matrices have
shape (l, k), row = prediction, column = truth. Names of losses and of their options are those of the package. A loss that is not
written out here is held to its own matrix: linear programs know no more of it.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

from advcli.losses import AdversarialLoss, make_loss

Array = NDArray[np.float64]
HINGES = ("cs", "ww", "llw")
WRITTEN = ("zero_one", "absolute", "ordinal", "squared", "power", "huber", "pinball", "abstain", "top_k")


# ---- loss matrices, entry by entry ----------------------------------------------------------------------------------
def loss_matrix(name: str, n_classes: int, **options: Any) -> Array:
    """Return the (l, k) matrix of an adversarial loss, written out from its definition; of one that is not in the table, its own."""
    k = n_classes
    if name in ("general", "convex"):
        return np.array(options["matrix"], dtype=float)
    if name == "top_k":  # a row for every set of K classes
        return np.array([[float(column not in guessed) for column in range(k)] for guessed in combinations(range(k), options.get("K", 2))])
    if name == "label_sets":
        price = options.get("price", 0.15)
        prices = price if isinstance(price, list) else [price * more for more in range(k)]
        chosen = [each for each in product((0, 1), repeat=k) if any(each)]
        return np.array([[1.0 - inside + prices[sum(each) - 1] for inside in each] for each in chosen])
    if name not in WRITTEN:
        loss = make_loss(name, k, **options)
        if not isinstance(loss, AdversarialLoss):
            raise ValueError(f"no matrix for {name!r}, which is no game")
        return np.array(loss.matrix)

    def entry(row: int, column: int) -> float:
        distance = abs(row - column)
        if name == "zero_one":
            return float(row != column)
        if name in ("absolute", "ordinal"):
            return float(distance)
        if name == "squared":
            return float(distance * distance)
        if name == "power":
            return float(distance ** options.get("p", 1.5))
        if name == "huber":
            delta = options.get("delta", 1.0)
            return 0.5 * distance**2 if distance <= delta else delta * (distance - 0.5 * delta)
        if name == "pinball":
            quantile = options.get("quantile", 0.5)
            return quantile * (column - row) if column >= row else (1 - quantile) * (row - column)
        if name == "abstain":
            alpha = options.get("alpha", 0.5)
            return float(row != column) if row < k else alpha[column] if isinstance(alpha, list) else alpha
        raise AssertionError(name)

    rows = k + 1 if name == "abstain" else k
    return np.array([[entry(row, column) for column in range(k)] for row in range(rows)])


# ---- one example: the game ------------------------------------------------------------------------------------------
def game_lp(L: ArrayLike, f: ArrayLike) -> tuple[float, Array, Array]:
    """Solve max_q min_row (Lq)_row + f.q and its dual min_p max_j (p'L)_j + f_j (Fathony et al. 2018, eq. 11, 131).

    Two separate linear programs by HiGHS; the answer is (value, q, p) and the two values must agree.
    """
    L, f = np.asarray(L, dtype=float), np.asarray(f, dtype=float)
    l, k = L.shape
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10, "presolve": False}
    primal = linprog(
        np.r_[-f, -1.0],
        A_ub=np.c_[-L, np.ones(l)],
        b_ub=np.zeros(l),
        A_eq=np.r_[np.ones(k), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * k + [(None, None)],
        method="highs-ds",
        options=tight,
    )
    dual = linprog(
        np.r_[np.zeros(l), 1.0],
        A_ub=np.c_[L.T, -np.ones(k)],
        b_ub=-f,
        A_eq=np.r_[np.ones(l), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * l + [(None, None)],
        method="highs-ds",
        options=tight,
    )
    if primal.status or dual.status:
        raise RuntimeError(f"linear program failed: {primal.message}; {dual.message}")
    scale = 1.0 + np.abs(f).max() + np.abs(L).max()
    if abs(-primal.fun - dual.fun) > 1e-9 * scale:
        raise RuntimeError(f"primal {-primal.fun!r} and dual {dual.fun!r} of the game disagree")
    # The bounds of HiGHS hold to its tolerance only: put both players back on their simplices, then read the value off.
    q, p = np.clip(primal.x[:k], 0.0, None), np.clip(dual.x[:l], 0.0, None)
    q, p = q / q.sum(), p / p.sum()
    return float((L @ q).min() + f @ q), q, p


def game_exact(L: ArrayLike, f: ArrayLike) -> Fraction:
    """Return the value of the game in rational arithmetic, whatever the size of the scores (small k and l only).

    Every vertex of {(q, v): v <= (Lq)_row, q in the simplex} has as many tight rows as positive q_j: try all pairs.
    """
    rational_L = [[Fraction(float(entry)) for entry in row] for row in np.asarray(L, dtype=float)]
    rational_f = [Fraction(float(score)) for score in np.asarray(f, dtype=float)]
    l, k = len(rational_L), len(rational_f)
    best: Fraction | None = None
    for size in range(1, min(l, k) + 1):
        for labels in combinations(range(k), size):
            for rows in combinations(range(l), size):
                system = [[rational_L[row][j] for j in labels] + [Fraction(-1), Fraction(0)] for row in rows]
                system.append([Fraction(1)] * size + [Fraction(0), Fraction(1)])
                solution = _solve_rational(system)
                if solution is None or min(solution[:size]) < 0:
                    continue
                q = [Fraction(0)] * k
                for j, mass in zip(labels, solution[:size], strict=True):
                    q[j] = mass
                guarantee = min(sum((row[j] * q[j] for j in range(k)), Fraction(0)) for row in rational_L)
                value = guarantee + sum((rational_f[j] * q[j] for j in range(k)), Fraction(0))
                best = value if best is None or value > best else best
    assert best is not None
    return best


def saddle_gap(L: ArrayLike, f: ArrayLike, q: ArrayLike, p: ArrayLike) -> float:
    """Return how much the two players together could gain by best responses: max_j (p'L)_j + f_j - min_i (Lq)_i - f.q.

    In rational arithmetic and with the largest score at 0, so that it means the same for scores of any size. Zero exactly
    at a saddle point, by weak duality, whatever the matrix.
    """
    rational_L = [[Fraction(float(entry)) for entry in row] for row in np.asarray(L, dtype=float)]
    scores = [Fraction(float(score)) for score in np.asarray(f, dtype=float)]
    scores = [score - max(scores) for score in scores]
    adversary, predictor = _distribution(q), _distribution(p)
    worst_truth = max(sum((mass * rational_L[i][j] for i, mass in predictor.items()), scores[j]) for j in range(len(scores)))
    best_prediction = min(sum((row[j] * mass for j, mass in adversary.items()), Fraction(0)) for row in rational_L)
    return float(worst_truth - best_prediction - sum((scores[j] * mass for j, mass in adversary.items()), Fraction(0)))


def _distribution(masses: ArrayLike) -> dict[int, Fraction]:
    """Return the positive masses as fractions that sum to one exactly; they must be a distribution up to rounding."""
    masses = np.asarray(masses, dtype=float)
    if masses.min() < 0 or abs(masses.sum() - 1.0) > 1e-12:
        raise AssertionError(f"not a distribution: {masses.tolist()}")
    positive = {j: Fraction(float(mass)) for j, mass in enumerate(masses) if mass > 0}
    total = sum(positive.values())
    return {j: mass / total for j, mass in positive.items()}


def _solve_rational(system: list[list[Fraction]]) -> list[Fraction] | None:
    """Gauss-Jordan elimination of a square system with its right-hand side as last column; None when singular."""
    size = len(system)
    system = [list(row) for row in system]
    for column in range(size):
        pivot = next((row for row in range(column, size) if system[row][column] != 0), None)
        if pivot is None:
            return None
        system[column], system[pivot] = system[pivot], system[column]
        head = system[column][column]
        system[column] = [entry / head for entry in system[column]]
        for row in range(size):
            if row != column and system[row][column] != 0:
                factor = system[row][column]
                system[row] = [a - factor * b for a, b in zip(system[row], system[column], strict=True)]
    return [row[size] for row in system]


def zero_one_brute(f: ArrayLike) -> float:
    """Return max over non-empty label sets S of (sum_S f + |S| - 1) / |S| (Theorem 5), by enumeration."""
    f = np.asarray(f, dtype=float)
    k = len(f)
    if k > 12:
        raise ValueError(f"2^{k} label sets are too many to enumerate")
    return max((float(sum(f[j] for j in labels)) + size - 1) / size for size in range(1, k + 1) for labels in combinations(range(k), size))


def squared_brute(f: ArrayLike) -> float:
    """Return the published O(k^3) formula of Theorem 7 without its - f_y (eq. 93)."""
    f = np.asarray(f, dtype=float)
    k = len(f)
    best = float(f.max())
    for i in range(k):
        for j in range(i + 1, k):
            for l in range(i + 1, j + 1):
                left = (2 * (j - l) + 1) * (f[i] + (l - i) ** 2)
                right = (2 * (l - i) - 1) * (f[j] + (j - l) ** 2)
                best = max(best, float((left + right) / (2 * (j - i))))
    return best


def extreme_points(name: str, n_classes: int, y: int) -> list[tuple[Array, float]]:
    """List the extreme points (r, c) of R(y) for a hinge loss (all of them satisfy sum_j r_j = 0)."""
    k, unit = n_classes, np.eye(n_classes)
    others = [j for j in range(k) if j != y]
    if name == "cs":
        return [(np.zeros(k), 0.0)] + [(unit[j] - unit[y], 1.0) for j in others]
    centre = {"ww": unit[y], "llw": np.full(k, 1.0 / k)}[name]
    points = []
    for a in product((0.0, 1.0), repeat=len(others)):
        r = sum((a_j * (unit[j] - centre) for a_j, j in zip(a, others, strict=True)), np.zeros(k))
        points.append((r, float(sum(a))))
    return points


def is_game(name: str, n_classes: int, **options: Any) -> bool:
    """Whether a loss is the game of a matrix."""
    known = name in (*WRITTEN, "general", "convex", "label_sets")
    return name not in HINGES and (known or isinstance(make_loss(name, n_classes, **options), AdversarialLoss))


def pieces(name: str, n_classes: int, y: int, **options: Any) -> list[tuple[Array, float]]:
    """Return the (r, c) whose hull is that of R(y): of a loss that is no game and not written out here, its own definition."""
    return extreme_points(name, n_classes, y) if name in HINGES else make_loss(name, n_classes, **options).pieces(y)


def oracle_brute(name: str, f: ArrayLike, y: int, **options: Any) -> float:
    """Return S(f, y): the maximum over the extreme points of R(y), or the game's value minus f_y."""
    f = np.asarray(f, dtype=float)
    if not is_game(name, len(f), **options):
        return max(float(r @ f) + c for r, c in pieces(name, len(f), y, **options))
    return game_lp(loss_matrix(name, len(f), **options), f)[0] - float(f[y])


def offset_brute(name: str, r: ArrayLike, y: int, **options: Any) -> float:
    """Return the largest c for which (r, c) is in the convex hull of R(y); r must lie in the hull's shadow."""
    r = np.asarray(r, dtype=float)
    if name in ("cs", "ww"):
        return float(sum(r[j] for j in range(len(r)) if j != y))
    if name == "llw":  # r_y = -(sum a)/k and r_j = a_j + r_y
        return float(sum(r[j] - r[y] for j in range(len(r)) if j != y))
    if not is_game(name, len(r), **options):  # the largest mixture of pieces that gives r
        listed = pieces(name, len(r), y, **options)
        R, c = np.array([each for each, _ in listed]), np.array([each for _, each in listed])
        sides = {"A_eq": np.vstack([R.T, np.ones(len(R))]), "b_eq": np.r_[r, 1.0]}
        found = linprog(-c, **sides, method="highs", options={"primal_feasibility_tolerance": 1e-9})
        assert found.status == 0, "r lies outside"
        return float(-found.fun)
    q = r + np.eye(len(r))[y]
    return float((loss_matrix(name, len(r), **options) @ q).min())


# ---- quadratic programs through Clarabel ----------------------------------------------------------------------------
def _clarabel(P: Any, c: Array, equal: tuple[Any, Array] | None, at_most: tuple[Any, Array]) -> Any:
    """Minimise z'Pz/2 + c'z subject to A_eq z = b_eq and A z <= b to Clarabel's last digits."""
    parts, sides, cones = [], [], []
    if equal is not None:
        parts.append(sp.csc_matrix(equal[0]))
        sides.append(np.asarray(equal[1], dtype=float))
        cones.append(clarabel.ZeroConeT(len(equal[1])))
    parts.append(sp.csc_matrix(at_most[0]))
    sides.append(np.asarray(at_most[1], dtype=float))
    cones.append(clarabel.NonnegativeConeT(len(at_most[1])))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 500
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    settings.reduced_tol_gap_abs = settings.reduced_tol_gap_rel = settings.reduced_tol_feas = 1e-9
    upper = sp.triu(sp.csc_matrix(P), format="csc")
    matrix = sp.csc_matrix(sp.vstack(parts, format="csc"))
    solution = clarabel.DefaultSolver(upper, c, matrix, np.concatenate(sides), cones, settings).solve()
    if str(solution.status) not in ("Solved", "AlmostSolved"):
        raise RuntimeError(f"Clarabel: {solution.status}")
    return solution


def block_qp(name: str, f: ArrayLike, r0: ArrayLike, y: int, w: float, **options: Any) -> Array:
    """Return argmax over r in the hull of R(y) of c(r) + f.r - w/2 |r - r0|^2, as a quadratic program.

    Hinge losses are solved in their own variables (q of cs, a of ww and llw), the norm stays in r.
    """
    f, r0 = np.asarray(f, dtype=float), np.asarray(r0, dtype=float)
    k, unit = len(f), np.eye(len(f))
    others = [j for j in range(k) if j != y]
    if name in ("ww", "llw") and k == 1:
        return np.zeros(1)
    if name in ("ww", "llw"):  # r = B a, c = sum a, a in the unit box
        centre = unit[y] if name == "ww" else np.full(k, 1.0 / k)
        B = np.stack([unit[j] - centre for j in others], axis=1)
        linear = np.ones(k - 1) + B.T @ (f + w * r0)
        box = (np.r_[np.eye(k - 1), -np.eye(k - 1)], np.r_[np.ones(k - 1), np.zeros(k - 1)])
        return B @ np.asarray(_clarabel(w * B.T @ B, -linear, None, box).x)
    if not is_game(name, k, **options):  # a mixture of pieces
        listed = pieces(name, k, y, **options)
        R, c = np.array([each for each, _ in listed]), np.array([each for _, each in listed])
        m = len(R)
        mixture = _clarabel(w * R @ R.T, -(c + R @ (f + w * r0)), (np.ones((1, m)), np.ones(1)), (-np.eye(m), np.zeros(m)))
        return np.asarray(mixture.x) @ R
    # r = q - e_y with (q, v): v = c(r), bounded by 1 - q_y (cs) or by every row of Lq (adversarial losses)
    if name == "cs":
        rows, bound = np.r_[unit[y], 1.0][None], np.ones(1)
    else:
        L = loss_matrix(name, k, **options)
        rows, bound = np.c_[-L, np.ones(len(L))], np.zeros(len(L))
    P = np.zeros((k + 1, k + 1))
    P[:k, :k] = w * np.eye(k)
    linear = np.r_[f + w * (r0 + unit[y]), 1.0]
    inequalities = (np.r_[rows, np.c_[-np.eye(k), np.zeros(k)]], np.r_[bound, np.zeros(k)])
    solution = _clarabel(P, -linear, (np.r_[np.ones(k), 0.0][None], np.ones(1)), inequalities)
    return np.asarray(solution.x)[:k] - unit[y]


def score_matrix(X: ArrayLike, n_classes: int, features: str) -> Any:
    """Return the sparse M with F.ravel() = M @ parameters.

    linear: parameters = theta.ravel(), theta (d, k), F = X theta. threshold: parameters = (w, eta), w (d,), eta (k - 1,),
    F_ij = (j + 1) x_i.w + sum of eta_l over l >= j.
    """
    X = np.asarray(X, dtype=float)
    n, k = len(X), n_classes
    if features == "linear":
        return sp.csr_matrix(sp.kron(sp.csr_matrix(X), sp.eye(k)))
    if features == "threshold":
        slopes = np.kron(X, np.arange(1.0, k + 1)[:, None])
        steps = np.tile([[float(l >= j) for l in range(k - 1)] for j in range(k)], (n, 1)).reshape(n * k, k - 1)
        return sp.csr_matrix(np.c_[slopes, steps])
    raise ValueError(f"unknown features {features!r}")


def solve_problem(
    name: str,
    X: ArrayLike,
    y: ArrayLike,
    lam: float,
    n_classes: int,
    sample_weight: ArrayLike | None = None,
    cost_weight: ArrayLike | None = None,
    features: str = "linear",
    tolerance: ArrayLike | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Minimise lam/2 |theta|^2 + sum_j tolerance_j |theta_j| + 1/n sum_i s_i w_i S(f_i / w_i, y_i), n = sum_i s_i, as a quadratic program.

    Parameters
    ----------
    sample_weight, cost_weight : array of shape (n,), optional
        s_i and w_i, one by default.
    features : {"linear", "threshold"}
        See `score_matrix`; the thresholds eta carry no lam.
    tolerance : array in the shape of the parameters, optional
        Weights of the L1 penalty, 0 by default; lam may be 0 with it.

    Returns
    -------
    dict
        primal, dual: Clarabel's two objectives; parameters: theta (d, k), or the vector (w, eta) of length d + k - 1.
    """
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=int)
    (n, d), k = X.shape, n_classes
    s = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    mean = s / s.sum()
    w = np.ones(n) if cost_weight is None else np.asarray(cost_weight, dtype=float)
    M = score_matrix(X, k, features)
    n_parameters = M.shape[1]
    label_rows = M[np.arange(n) * k + y]  # f_{i, y_i}
    penalised = np.full(n_parameters, lam)
    if features == "threshold":
        penalised[d:] = 0.0
    equal = None
    each = sp.eye(n)

    # S_i = min over auxiliary variables z_i of a linear function, subject to linear constraints in (F, z):
    #   C_f F + C_z z <= b,  cost.z - f_y for the adversarial losses and cs, cost.z for ww and llw
    if name == "cs":  # v_i >= f_ij + w_i 1[j != y_i]
        auxiliary = n
        C_f, C_z = M, -sp.kron(each, np.ones((k, 1)))
        b = -(np.ones((n, k)) - np.eye(k)[y]) * w[:, None]
        b, cost, minus_label = b.ravel(), mean, True
    elif name in ("ww", "llw"):  # slack_ij >= max(0, w_i + f_ij - centre_i) for j != y_i
        auxiliary = n * k
        spread = sp.csr_matrix(np.ones((k, 1)))
        centre = sp.kron(each, spread) @ label_rows if name == "ww" else sp.kron(each, np.full((k, k), 1.0 / k)) @ M
        active = (np.ones((n, k)) - np.eye(k)[y]).ravel()
        C_f = sp.vstack([sp.diags(active) @ (M - centre), sp.csr_matrix((n * k, n_parameters))])
        C_z = -sp.vstack([sp.eye(n * k), sp.eye(n * k)])
        b = np.r_[-active * np.repeat(w, k), np.zeros(n * k)]
        cost, minus_label = np.repeat(mean, k), False
        if name == "llw" and features == "linear":  # the published constraint, sum_j f_j = 0 at every x
            sums = sp.kron(sp.eye(d), np.ones((1, k)))
            equal = (sp.hstack([sums, sp.csr_matrix((d, auxiliary))]), np.zeros(d))
    elif not is_game(name, k, **options):  # v_i >= r.f_i + w_i c for every piece
        auxiliary = n
        listed = [pieces(name, k, int(label), **options) for label in y]
        parts = [np.array([r for r, _ in each]) for each in listed]
        C_f = sp.block_diag(parts) @ M
        C_z = -sp.block_diag([np.ones((len(part), 1)) for part in parts])
        b = -np.concatenate([w_i * np.array([c for _, c in each]) for w_i, each in zip(w, listed, strict=True)])
        cost, minus_label = mean, False
    else:  # v_i >= f_ij + w_i (p_i'L)_j, p_i in the simplex of the l predictions
        L = loss_matrix(name, k, **options)
        l = len(L)
        auxiliary = n * (l + 1)  # p_i then v_i, example by example
        inner = [np.c_[w_i * L.T, -np.ones(k)] for w_i in w]
        positive = sp.kron(each, np.c_[-np.eye(l), np.zeros(l)])
        C_f = sp.vstack([M, sp.csr_matrix((n * l, n_parameters))])
        C_z = sp.vstack([sp.block_diag(inner), positive])
        b = np.zeros(n * k + n * l)
        total = sp.kron(each, np.r_[np.ones(l), 0.0][None])
        equal = (sp.hstack([sp.csr_matrix((n, n_parameters)), total]), np.ones(n))
        cost, minus_label = np.kron(mean, np.r_[np.zeros(l), 1.0]), True

    linear = -np.asarray(label_rows.T @ mean).ravel() if minus_label else np.zeros(n_parameters)
    limits, linear = sp.hstack([C_f, C_z]), np.r_[linear, cost]
    if tolerance is not None:  # one more variable u_j >= |theta_j| for every parameter
        weights = np.ravel(np.asarray(tolerance, dtype=float))
        others, own = sp.csr_matrix((n_parameters, auxiliary)), sp.eye(n_parameters)
        limits = sp.vstack(
            [sp.hstack([limits, sp.csr_matrix((len(b), n_parameters))]), sp.hstack([own, others, -own]), sp.hstack([-own, others, -own])]
        )
        b, linear = np.r_[b, np.zeros(2 * n_parameters)], np.r_[linear, weights]
        if equal is not None:
            equal = (sp.hstack([equal[0], sp.csr_matrix((equal[0].shape[0], n_parameters))]), equal[1])
        auxiliary += n_parameters
    P = sp.diags(np.r_[penalised, np.zeros(auxiliary)])
    solution = _clarabel(P, linear, equal, (limits, b))
    parameters = np.asarray(solution.x)[:n_parameters]
    return {
        "primal": float(solution.obj_val),
        "dual": float(solution.obj_val_dual),
        "parameters": parameters.reshape(d, k) if features == "linear" else parameters,
    }
