"""Hostile arguments for every function of the compiled modules: python hostile_calls.py LEVEL [SEED].

A valid call of each function is varied argument by argument: lengths, types, layouts, positions out of range, NaN and huge numbers. Each
call must raise or return; positions out of range, wrong types and lengths that do not fit must raise. The call under way is the last line
of output, so that a crash, which ends the process, is told by the parent (`test_compiled_hostile.py`).
"""

import faulthandler
import inspect
import itertools
import os
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

from advcli.core import compiled
from advcli.losses import loss_class, loss_names, make_loss

REFUSALS = (ValueError, TypeError, OverflowError, MemoryError)
INT_MAX = 2**31 - 1

# Arguments whose huge values ask for time, not for room: a caller's to choose.
PATIENCE = {
    "max_passes",
    "max_visits",
    "max_seconds",
    "passes",
    "products",
    "rounds",
    "limit",
    "epochs",
    "sweeps",
    "max_sweeps",
    "most_steps",
    "together",
    "turn",
}
# Arguments that hold positions or codes: one outside its range must be refused.
POSITIONS = {"y", "columns", "start", "begin", "order", "rows", "first", "node", "parent", "up", "up_start", "beta_start", "beta_label"}
POSITIONS |= {"stop", "at", "child", "label_start", "label_nodes", "slot", "centre", "example", "gram_start", "part", "held", "used"}
POSITIONS |= {"new_example", "other_start", "other_at", "made_start", "made_at"}
# Lengths that nothing else determines: (function, argument).
ANY_LENGTH = {(f"subgradient.{name}", "order") for name in ("sgd", "adaptive", "dual_averaging", "averaged_gradient")}
# How many projectors, rows of K or classes there are follows from the positions alone.
ANY_LENGTH |= {("uma.online", "W"), ("newton_faces.projectors", "M"), ("ascent_kernel.gather", "K"), ("ascent_kernel.accumulate", "K")}
ANY_LENGTH |= {("ascent_kernel.extend", "rows")}
# Rows have any number of columns.
ANY_LENGTH |= {("gaussian.matrix", "X"), ("equal_rows.sets", "X"), ("equal_rows.sets", "tail")}
# Which parts are shared is a matter of how many weights there are.
ANY_LENGTH |= {("planes.visits", "shared")}
# There may be any number of right sides.
ANY_LENGTH |= {("arithmetic.solve_lower", "B"), ("arithmetic.solve_eliminated", "B")}
# Directions and r have any number of entries.
ANY_LENGTH |= {("ascent_faces.ascend", "B"), ("ascent_faces.off_corners", "R")}
# Bases have any number of classes.
ANY_LENGTH |= {("newton_faces.pairs", "B")}
# There may be any number of outcomes.
ANY_LENGTH |= {("outcomes.games", "outcomes")}
# Longer than needed is no fault.
AT_LEAST = {
    ("arithmetic.add_sparse_product", "X"),
    ("arithmetic.add_sparse_product", "Y"),
    ("arithmetic.sparse_by_sparse", "row"),
    ("ascent_kernel.solve", "K"),
    ("ascent_kernel.extend", "out"),
    ("grams.upper", "X"),
    ("newton_faces.pairs", "weight"),
    ("subgradient.sgd", "squares"),
    ("subgradient.sgd", "state"),
    ("subgradient.dual_averaging", "state"),
}
# Rows and columns may lie apart.
APART = {("arithmetic.add_row_products", "A"), ("arithmetic.add_row_products", "B"), ("few_columns.scores", "F"), ("few_columns.sums", "R")}
# None at all stands for "not wanted", "all 1" or "dense"; a general matrix of no rows has no tight ones.
OPTIONAL = {
    "sample_weight",
    "cost_weight",
    "tolerance",
    "R",
    "tight",
    "gap",
    "parent",
    "Z",
    "table",
    "margin",
    "divisor",
    "centre",
    "offset",
    "at",
}

N, D, K, L = 7, 3, 3, 4


def modules(kernels):
    """Return the compiled modules by name, without their level."""
    sources = sorted(path.stem for path in (Path(__file__).parents[2] / "_ext").rglob("*.pyx"))
    loaded = {name: kernels._oracle if name == "oracle" else getattr(kernels, name) for name in sources}
    assert all(isinstance(module, ModuleType) for module in loaded.values()), "a module of _ext is named like a method of Kernels"
    return loaded


def functions(kernels):
    """Return every function that Python can call, as "module.name"."""
    return {
        f"{name}.{key}": value
        for name, module in modules(kernels).items()
        for key, value in vars(module).items()
        if not key.startswith("_") and callable(value) and not inspect.isclass(value)
    }


# ---- valid calls ------------------------------------------------------------------------------------------------------


def some_rows(random, sparse, n=N, d=D):
    """Return dense rows, or sparse ones of which one is empty."""
    X = random.normal(size=(n, d))
    if not sparse:
        return {"values": X.ravel(), "columns": np.empty(0, np.int32), "start": np.empty(0, np.int64), "n": n, "d": d}, X
    X[random.random((n, d)) < 0.4] = 0.0
    X[2] = 0.0
    at = np.nonzero(X)
    start = np.concatenate([[0], np.cumsum(np.bincount(at[0], minlength=n))]).astype(np.int64)
    return {"values": X[at], "columns": at[1].astype(np.int32), "start": start, "n": n, "d": d}, X


def parameters(kind, random):
    """Return the parameters of a family; of one that takes a matrix, one that is convex in the prediction."""
    if kind in ("convex", "general"):
        matrix = (np.arange(L)[:, None] - 1.5 * np.arange(K)) ** 2
        return np.concatenate([[float(L)], matrix.ravel()])
    if kind in ("rejecting_bep", "rejecting_ova"):  # one pair of columns, a sign for each label
        return np.concatenate([[0.3, 1.0], np.where(np.arange(K) % 2, 1.0, -1.0)])
    if kind == "rejecting_cs":
        return np.array([0.3])
    cases = (make_loss(name, K, **options).core for name in loss_names() for options in loss_class(name).examples(K))
    return next(loss.parameters for loss in cases if loss.kernel == kind)


def families(random):
    return [{"kind": code, "k": K, "parameters": parameters(kind, random)} for code, kind in enumerate(compiled.kernels.families)]


def labels(random, n=N, k=K):
    return random.integers(k, size=n).astype(np.intp)


def shares(random, *shape):
    """Return points of the simplex."""
    Q = random.random(shape) + 0.1
    return Q / Q.sum(axis=-1, keepdims=True)


def padded(a, width):
    out = np.zeros((*a.shape[:-1], width))
    out[..., : a.shape[-1]] = a
    return out


def oracle_calls(_, random):
    yield "families", {}
    for family in families(random):
        F, y = random.normal(size=(N, K)), labels(random)
        R = shares(random, N, K) - np.eye(K)[y]
        l = L if family["kind"] == compiled.kernels.families.index("general") else 0
        yield "evaluate", {**family, "F": F, "y": y, "value": np.empty(N), "R": np.empty((N, K)), "c": np.empty(N)}
        yield "offset", {**family, "R": R, "y": y, "c": np.empty(N)}
        yield (
            "block",
            {
                **family,
                "F": F,
                "R": R,
                "y": y,
                "curvature": random.random(N) + 0.1,
                "out": np.empty((N, K)),
                "state": np.zeros((N, K), np.int8),
                "normal": np.empty((N, K)),
                "tight": np.zeros((N if l else 0, l), np.int8),
                "gap": np.empty(N if l else 0),
            },
        )
        search = {"F": F, "dF": random.normal(size=(N, K)), "center": R, "y": y, "cost_weight": np.ones(N if l else 0)}
        search |= {
            "sample_weight": np.ones(N),
            "curvature": 0.5,
            "factor": 1.0,
            "slope0": -1.0,
            "base": 0.0,
            "square": 0.1,
            "most": 20,
            "before": R.copy(),
        }
        search |= {"before_state": np.zeros((N, K), np.int8), "scores": np.empty((N, K)), "R": np.empty((N, K))}
        search |= {"state": np.zeros((N, K), np.int8)}
        yield "search", {**family, **search, "normal": np.zeros((N, K)), "tight": np.zeros((N if l else 0, l), np.int8)}
        yield "judge", {**family, "F": F, "R": R, "y": y, "weight": np.ones(N)}
    yield (
        "games",
        {
            "k": K,
            "parameters": parameters("general", random),
            "F": random.normal(size=(N, K)),
            "Q": np.empty((N, K)),
            "P": np.empty((N, L)),
            "pivots": np.empty(N, np.intp),
        },
    )


def dual_calls(module, random):
    width = module.width(K)
    for at, family in enumerate(families(random)):
        rows, X = some_rows(random, at % 2)
        weights = random.random(N) + 0.1
        yield (
            "solve",
            {
                **family,
                **rows,
                "y": labels(random),
                "square": (X**2).sum(axis=1),
                "sample_weight": weights,
                "cost_weight": weights[::-1].copy(),
                "R": np.zeros((N, width)),
                "theta": np.zeros((D, width)),
                "lam": 0.1,
                "mass": float(weights.sum()),
                "tol": 1e-3,
                "max_passes": 20.0,
                "max_seconds": 5.0,
                "seed": 1,
                "threads": 1 + (at % 2 == 0 and at % 4 // 2),
                "together": 2,
                "turn": 15.0,
                "progress": None if at % 2 == 0 and at % 4 // 2 else module.Progress(N, 1, 2.0),
            },
        )
    yield "width", {"k": K}


def dual_lists_calls(module, random):
    for family in families(random):
        if family["kind"] not in [compiled.kernels.families.index(name) for name in ("zero_one", "cs")]:
            continue
        rows, X = some_rows(random, True)
        weights, y = random.random(N) + 0.1, labels(random)
        yield (
            "solve",
            {
                **family,
                **rows,
                "y": y,
                "square": (X**2).sum(axis=1),
                "sample_weight": weights,
                "cost_weight": weights[::-1].copy(),
                "lists": module.Lists(N, K),
                "theta": np.zeros((D, module.width(K))),
                "lam": 0.1,
                "mass": float(weights.sum()),
                "tol": 1e-3,
                "max_passes": 20.0,
                "max_seconds": 5.0,
                "seed": 1,
                "turn": 15.0,
                "threads": 2,
            },
        )
    yield "width", {"k": K}


def scores_calls(_, random):
    rows, _ = some_rows(random, True)
    yield "sparse", {**rows, "theta": random.normal(size=(D, K)), "F": np.empty((N, K)), "first": 0, "last": K}
    point = {"numbers": random.normal(size=N), "labels": random.integers(0, K, N).astype(np.int32), "begin": np.arange(N + 1)}
    yield "adjoint", {**rows, **point, "k": K, "together": 2, "total": np.zeros((D, K)), "first": 0, "last": K}
    for number in range(4):
        yield "standardised", {**some_stored(random, single=number % 2 == 0, listed=number > 1), "X": np.empty((N, D + 1))}


def few_columns_calls(_, random):
    X = random.normal(size=(N, D))
    yield "scores", {"X": X, "A": random.normal(size=(D, K)), "F": np.empty((N, K))}
    yield "sums", {"X": X, "R": random.normal(size=(N, K)), "total": np.empty((D, K))}


def grams_calls(_, random):
    rows = random.permutation(N).astype(np.intp)
    yield "upper", {"X": random.normal(size=(N, D)), "rows": rows, "weight": random.normal(size=N), "sums": np.zeros((D, D))}


def some_stored(random, single, listed):
    """Rows that are read in blocks: N of them, all that are stored, or ``listed``."""
    there = N + 2 * listed
    X = random.normal(size=(there, D))
    return {
        "single": X.ravel().astype(np.float32) if single else np.empty(0, np.float32),
        "whole": np.empty(0) if single else X.ravel(),
        "at": random.permutation(there)[:N].astype(np.int64) if listed else np.empty(0, np.int64),
        "n": N,
        "own": D,
        "constant": True,
        "mean": random.normal(size=D),
        "inverse": random.random(D) + 0.5,
        "shift": np.zeros(D),
    }


def dual_blocks_calls(module, random):
    width = module.width(K)
    for at, family in enumerate(families(random)):
        yield (
            "solve",
            {
                **family,
                **some_stored(random, single=at % 2 == 0, listed=at % 3 == 1),
                "y": labels(random).astype(np.int32),
                "sample_weight": random.random(N) + 0.1,
                "cost_weight": random.random(N) + 0.1,
                "store": module.Store(N, K, 3),
                "theta": np.zeros((D + 1, width)),
                "gap": np.zeros(N, np.float32),
                "lam": 0.1,
                "mass": float(N),
                "tol": 1e-3,
                "max_passes": 20.0,
                "max_seconds": 5.0,
                "seed": 1,
                "together": 4,
                "turn": 15.0,
                "threads": 1 + at % 2,
                "visits": 4,
            },
        )
    yield "width", {"k": K}


def corrected_calls(module, random):
    width = module.width(K)
    for sparse in (False, True):
        rows, X = some_rows(random, sparse)
        yield (
            "sweep",
            {
                "kind": 0,
                "k": K,
                **rows,
                "y": labels(random),
                "square": (X**2).sum(axis=1),
                "sample": np.ones(N),
                "M": padded(np.eye(K), width),
                "R": np.zeros((N, width)),
                "theta": np.zeros((D, width)),
                "scale": 1.0,
                "largest": 1.0,
                "skip": 1e-9,
                "passes": 2,
                "seed": 1,
            },
        )
    yield "width", {"k": K}


def kernel_dual_calls(module, random):
    width = module.width(K)
    A = random.normal(size=(N, D))
    gram = A @ A.T + np.eye(N)
    ones = np.ones(N)
    limits = {"scale": 1.0, "goal": 1e-6, "skip": 0.0, "max_visits": 200.0, "max_seconds": 5.0, "seed": 1, "turn": 150.0}
    for family in families(random):
        y = labels(random)
        R = padded(shares(random, N, K) - np.eye(K)[y], width)
        both = {"sample_weight": ones, "cost_weight": ones.copy()}
        for dtype in (np.float32, np.float64):
            given = {"K": gram.astype(dtype), "y": y, **both, "F": np.zeros((K, N)), "R": np.zeros((N, width))}
            yield "solve", {**family, **given, **limits, "chunk": 3, "sweeps": 2}
        yield "survey", {**family, "F": random.normal(size=(K, N)), "y": y, **both, "R": R, "gap": np.empty(N)}
    points = 2 * N
    yield (
        "solve_listed",
        {
            "K": gram,
            "first": np.arange(0, points + 1, 2).astype(np.intp),
            "r": random.normal(size=(points, K)),
            "offset": random.random(points),
            "weight": np.full(points, 0.5),
            "sample_weight": ones,
            "cost_weight": ones.copy(),
            "F": np.zeros((K, N)),
            **limits,
        },
    )
    rows = np.array([4, 0, 6], np.intp)
    for dtype in (np.float32, np.float64):
        yield "extend", {"K": gram, "rows": rows, "held": 1, "out": np.zeros((3, 3), dtype)}
    yield "examine", {"K": gram, "v": ones, "root": ones.copy(), "u": np.empty(N), "w": np.empty(N)}
    yield "gather", {"K": gram, "rows": rows, "columns": np.array([1, 5], np.intp), "out": np.empty((3, 2))}
    yield "accumulate", {"K": gram, "rows": rows, "A": random.normal(size=(3, K)), "F": np.zeros((K, N))}
    yield "width", {"k": K}


def uma_calls(_, random):
    for sparse in (False, True):
        rows, X = some_rows(random, sparse)
        y, inverse = labels(random), np.linalg.inv(0.7 * np.eye(K) + 0.1)
        share, W = np.full(N, 1.0 / N), np.zeros((K, D))
        bound = {**rows, "y": y, "share": share, "inverse": inverse}
        settings = {"alpha": 0.0, "tol": 1e-9, "rule": 2 * sparse, "step": 0, "unit": sparse, "limit": 20, "seed": 1}
        yield "learn", {**bound, "prior": np.full(K, 1 / K), "W": W, "F": np.zeros((N, K)), **settings}
        online = {"square": (X**2).sum(axis=1), "W": W.copy(), "step": 3, "epochs": 3, "seed": 1}
        yield "online", {**rows, "y": y, **online}


def newton_calls(module, random):
    state = random.integers(0, 3, size=(N, K)).astype(np.int8)
    normal = random.normal(size=(N, K))
    yield "tangents", {"state": state, "normal": normal, "skip": np.zeros(N, np.int8)}
    free = (2 * (state > 0)).astype(np.int8)
    most = np.maximum((free > 0).sum(axis=1) - 1, 0).astype(np.int32)
    flags = random.integers(0, 2, size=(N, L)).astype(np.int8)
    m = int(most.sum())
    yield (
        "matrix_bases",
        {
            "matrix": random.normal(size=(L, K)),
            "state": free,
            "tight": flags,
            "most": most,
            "B": np.zeros((m, K)),
            "owner": np.zeros(m, np.intp),
        },
    )
    B = random.normal(size=(5, K))
    yield "projectors", {"B": B, "slot": np.array([0, 0, 1, 2, 2], np.intp), "M": np.zeros((3, K, K))}
    yield "pairs", {"B": B, "slot": np.array([0, 0, 1, 2, 2], np.intp), "weight": random.random(3)}
    owners = np.array([0, 0, 1, 4, 4], np.intp)
    p = D * (K - 1)
    moments = np.eye(p) + 0.1
    for sparse in (False, True):
        rows, _ = some_rows(random, sparse)
        lists = {"example": owners, "B": B, "new_example": owners[1:].copy(), "new": B[1:].copy()}
        yield "follow", {**rows, "weight": random.random(N), **lists, "total": np.zeros((p, p)), "most": 7}
    yield "cholesky", {"H": moments, "factor": np.zeros((p, p))}
    yield "direction", {"moments": moments, "factor": 2.0, "gradient": random.normal(size=(D, K)), "D": np.empty((D, K))}
    y, center = labels(random), random.normal(size=(N, K))
    yield (
        "separate_face",
        {"F": random.normal(size=(N, K)), "center": center, "y": y, "c": 0.5, "R": np.empty((N, K)), "inside": np.empty((N, K))},
    )
    H = np.eye(4) + 0.1
    limits = {"tol": 1e-9, "max_sweeps": 20}
    yield "l1_quadratic", {"H": H, "gradient": random.normal(size=4), "weight": np.full(4, 0.1), "x": np.zeros(4), **limits}


def hierarchical_calls(_, random):
    # two inner nodes under a root, three leaves
    parent = np.array([-1, 0, 0, 1, 1, 2], np.int32)
    up = np.array([0, 1, 3, 0, 1, 4, 0, 2, 5], np.int32)
    for sparse in (False, True):
        for tables in (False, True):
            rows, X = some_rows(random, sparse)
            y = np.arange(N, dtype=np.intp) % K
            none = np.empty((0, 0))
            graph = {"node": np.array([3, 4, 5], np.int32), "parent": parent if tables else np.empty(0, np.int32)}
            graph |= {"up_start": np.array([0, 3, 6, 9], np.int64), "up": up, "alpha": np.ones(6), "mu": np.ones(6)}
            graph |= {"power": 1.0, "normalised": not tables, "table": np.eye(K) if tables else none}
            graph |= {"margin": 1.0 - np.eye(K) if tables else none, "divisor": np.ones((K, K)) if tables else none}
            dual = {"beta_start": np.arange(N + 1).astype(np.int64), "beta_label": ((y + 1) % K).astype(np.int32)}
            yield (
                "solve",
                {
                    **rows,
                    "y": y,
                    "square": (X**2).sum(axis=1),
                    "sample_weight": np.ones(N),
                    **graph,
                    **dual,
                    "beta_value": np.full(N, 0.2),
                    "scale": 1.0,
                    "mass": float(N),
                    "tol": 1e-3,
                    "max_passes": 20.0,
                    "max_seconds": 5.0,
                    "seed": 1,
                    "lists": sparse,
                    "single": sparse and tables,
                },
            )


def label_sets_calls(module, random):
    start, child = np.array([0, 2, 4, 5, 5, 5, 5], np.int64), np.array([1, 2, 3, 4, 5], np.int32)
    M, edges = 6, 5
    graph = {"start": start, "child": child}
    R = random.normal(size=(N, M))
    yield "best_sets", {**graph, "R": R, "value": np.empty(N), "Z": np.empty((N, M), np.uint8)}
    yield "bounds", {**graph, "R": R, "nu": np.zeros((N, edges + M), np.float32), "value": np.empty(N)}
    for sparse in (False, True):
        rows, X = some_rows(random, sparse)
        rows = {"begin" if name == "start" else name: value for name, value in rows.items()}
        # the first leaf and its ancestors
        mu = np.zeros((N, M))
        mu[:, [0, 1, 3]] = 1.0
        yield (
            "sweep",
            {
                **rows,
                **graph,
                "tree": not sparse,
                "leaf": np.array([0, 0, 0, 1, 1, 1], np.uint8),
                "factor": np.full(M, 0.5),
                "label_start": 3 * np.arange(N + 1, dtype=np.int64),
                "label_nodes": np.tile(np.array([0, 1, 3], np.int32), N),
                "square": (X**2).sum(axis=1),
                "sample": np.ones(N),
                "Z": np.zeros((D, module.width(M))),
                "mu": mu,
                "nu": np.zeros((N, edges + M), np.float32),
                "sweeps": 4,
                "tolerance": 1e-6,
                "skip": 0.0,
                "passes": 2,
                "seed": 1,
            },
        )
    yield "width", {"k": M}


def subgradient_calls(module, random):
    width = module.width(K)
    for at, family in enumerate(families(random)):
        shape = at % 3
        d = N if shape == 2 else D
        rows, X = some_rows(random, at % 2 and shape < 2, d=d)
        size = d + K - 1 if shape == 1 else d * width
        weights = random.random(N) + 0.1
        bound = {**family, "shape": shape, **rows, "y": labels(random), "square": (X**2).sum(axis=1)}
        bound |= {"sample_weight": weights, "cost_weight": weights.copy(), "mass": float(weights.sum())}
        bound |= {"order": random.permutation(N).astype(np.intp)}
        R, counts, theta, zeros = np.zeros((N, width)), np.zeros(N, np.int32), np.zeros(size), np.zeros(size)
        box = np.full(size, 0.01) if at % 2 else np.empty(0)
        state = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
        sums = {"R": R, "counts": counts}
        yield (
            "sgd",
            {
                **bound,
                "u": theta,
                "average": zeros,
                "squares": np.zeros(K),
                **sums,
                "state": state,
                "lam": 0.1,
                "radius": 0.0 if shape == 1 else 2.0,
                "unit": 1.0,
                "late": 1,
            },
        )
        moments = {"batch": 2, "theta": theta, "gradient": zeros, "first": zeros.copy(), "second": zeros.copy(), **sums}
        steps = {"steps": 0.0, "lam": 0.1, "step": 0.1, "beta1": 0.9, "beta2": 0.999 * (at % 2)}
        yield "adaptive", {**bound, **moments, **steps, "tolerance": box}
        yield (
            "dual_averaging",
            {
                **bound,
                "batch": 2,
                "theta": theta,
                "total": zeros,
                "average": zeros.copy(),
                **sums,
                "state": state,
                "lam": 0.1,
                "strength": 1.0,
                "late": 0,
                "tolerance": np.full(size, 0.01),
            },
        )
        centre = padded(shares(random, N, K) - np.eye(K)[bound["y"]], width)
        smooth = {"R": centre.copy(), "centre": centre, "lam": 0.1, "smoothing": 0.5, "step": 0.1, "tolerance": box}
        yield "averaged_gradient", {**bound, "batch": 2, "theta": theta, "total": zeros, **smooth}
    yield "width", {"k": K}


def binary_calls(module, random):
    m = 2
    signs = random.choice([-1, 1], size=(m, N)).astype(np.int8)
    bound = random.uniform(0.0, 2.0, size=(m, N))
    bound[0, 1] = 0.0
    own = {"label": signs, "bound": bound, "margin": random.normal(size=(m, N)), "A": np.zeros((m, N))}
    limits = {"tol": 1e-6, "max_passes": 20.0, "max_seconds": 10.0}
    for sparse in (False, True):
        rows, X = some_rows(random, sparse)
        rest = {"seed": 1, "blocks": sparse, "found": np.zeros((m, 4)), "turn": 15.0}
        yield "linear", {**rows, "square": (X**2).sum(axis=1), **own, "V": np.zeros((m, D)), **limits, **rest}
    yield "kernel", {"K": X @ X.T, "shift": 1.0, **own, **limits, "found": np.zeros((m, 4)), "turn": 15.0}


def threshold_calls(_, random):
    m = K
    given = {"y": labels(random, k=K + 1), "U": random.random((m, N)), "g": random.normal(size=N), "eta": random.normal(size=m)}
    yield "hinges", dict(given)
    given |= {"A": random.random((m, N)), "sigma": 0.3}
    order = {"centre": random.random(m - 1), "ease": 0.2}
    out = {"alpha": np.empty((m, N)), "beta": np.empty(N), "total": np.empty(m), "free_of": np.empty(N, np.int32)}
    yield "step", {**given, **out}
    yield "slope", {**given, "dg": random.normal(size=N), "deta": random.normal(size=m), **order, "t": 0.5}
    yield "settle", {**given, "M": np.eye(m), **order}


def pairs_calls(_, random):
    X = random.normal(size=(N, D))
    given = {"y": labels(random, k=K + 1), "U": random.random((K, N)), "K": X @ X.T}
    for coupling in range(3):
        for offset in (np.empty(0), random.normal(size=N)):
            moving = {"alpha": np.zeros((K, N)), "g": np.zeros(N), "tol": 1e-3, "most_steps": 50}
            yield "ascend", {**given, "offset": offset, "coupling": coupling, **moving}


def ascent_faces_calls(_, random):
    yield "off_corners", {"R": random.integers(-1, 2, size=(N, K)) * 0.5, "found": np.empty(N, dtype=np.intp)}
    m, owner = 2 * N, np.repeat(np.arange(N), 2)
    for sparse, slacks in ((False, 0), (True, 8)):
        rows, _ = some_rows(random, sparse)
        ascent = {
            "B": random.normal(size=(m, K)),
            "owner": owner,
            "gradient": random.normal(size=m),
            "slack": random.random((N, slacks)),
            "rate": random.normal(size=(m, slacks)),
        }
        limits = {"rounds": 3, "sweeps": 2, "products": 5, "tol": 1e-6}
        yield "ascend", {**rows, **ascent, "z": np.zeros(m), **limits}


def equal_rows_calls(_, random):
    yield (
        "sets",
        {
            "X": random.integers(0, 2, size=(N, D)) * 1.0,
            "tail": random.integers(0, 2, size=(N, 2)) * 1.0,
            "leader": np.empty(N, dtype=np.intp),
            "inverse": np.empty(N, dtype=np.intp),
        },
    )


def processor_calls(_, random):
    yield "version", {}


def gaussian_calls(_, random):
    yield "matrix", {"X": random.normal(size=(N, D)), "gamma": 0.5, "constant": 1.0, "K": np.empty((N, N))}


def arithmetic_calls(_, random):
    B = random.normal(size=(N, N))
    G, right = B @ B.T + np.eye(N), random.normal(size=(N, 2))
    yield "lanes", {}
    yield "exchange", {"portable": False}
    yield "exchange", {"portable": True}
    yield "exchange", {"portable": False}
    yield "normal", {"z": random.normal(size=N), "out": np.empty(N)}
    yield "cholesky", {"A": G}
    for transposed in (False, True):
        yield "solve_lower", {"L": np.linalg.cholesky(G), "B": right, "transposed": transposed}
    yield "eliminate", {"A": B, "pivots": np.zeros(N, dtype=np.intp)}
    yield "solve_eliminated", {"A": B, "pivots": np.arange(N), "B": right}
    yield "eigen", {"A": np.stack([G, B + B.T]), "values": np.empty((2, N)), "vectors": np.empty((2, N, N))}
    yield "eigen_some", {"A": G.copy(), "values": np.empty(N), "vectors": np.empty((2, N)), "first": N - 2}
    for lanes in (False, True):
        yield "add_row_products", {"A": B, "B": G, "out": np.zeros(N), "lanes": lanes}
    for places in (np.int32, np.int64):
        rows = {"start": np.arange(N + 1, dtype=places), "at": np.arange(N, dtype=places), "values": random.normal(size=N)}
        for transposed in (False, True):
            yield "add_sparse_product", {**rows, "X": right, "Y": np.zeros((N, 2)), "transposed": transposed}
        yield (
            "sparse_by_sparse",
            {**rows, **{f"{side}_{name}": each for side in ("other", "made") for name, each in rows.items()}, "row": np.zeros(N)},
        )


def sets_calls(_, random):
    for m in (2, 5):
        centre = random.integers(0, 2**m, size=N).astype(np.intp)
        out = {"best": np.empty((N, m + 1)), "label": np.empty((N, m + 1), np.intp)}
        yield "levels", {"U": random.normal(size=(N, m)), "table": random.normal(size=2**m), "centre": centre, **out}


def planes_calls(module, random):
    example, G = np.array([0, 2, 3, N], np.int64), 4
    lengths = np.diff(example)
    for sparse in (False, True):
        rows, X = some_rows(random, sparse)
        gram = np.concatenate([(X[a:b] @ X[a:b].T).ravel() for a, b in itertools.pairwise(example)])
        first = np.array([0, 2, 2, 5], np.int64)
        owner = np.repeat(np.arange(3), np.diff(first))
        few = [np.sort(random.permutation(G + K * lengths[i])[:4]) for i in owner]
        planes = {"first": first, "begin": 4 * np.arange(6, dtype=np.int64), "part": np.concatenate(few).astype(np.int32)}
        planes |= {"coefficient": random.normal(size=20), "constant": random.random(5), "alpha": np.array([0.5, 0.5, 0.0, 0.3, 0.2])}
        own = {"W": np.zeros((D, module.width(K))), "shared": np.zeros(G), "K": K, "lam": 0.1}
        limits = {"steps": 5, "passes": 3, "enough": 0.0, "seed": 1}
        starts = {"gram": gram, "gram_start": np.concatenate([[0], np.cumsum(lengths**2)]).astype(np.int64)}
        yield "visits", {**rows, "example": example, "share": np.full(3, 1 / 3), **starts, **planes, **own, **limits}
        # two planes of two parts each and a place at every row
        begin, places = np.zeros((N, 3), np.int64), 4 * N + K * np.arange(N)
        begin[:, 0], begin[:, 1], begin[:, 2] = 4 * np.arange(N), 4 * np.arange(N) + 2, places
        stop = begin + np.array([2, 2, 0])
        shares = {"share": np.full(N, 1 / N), "gram": (X**2).sum(axis=1), "first": 3 * np.arange(N + 1, dtype=np.int64)}
        part = np.where(np.arange((4 + K) * N) % 2, 2, 0).astype(np.int32)
        planes = {"begin": begin.ravel(), "stop": stop.ravel(), "part": part, "coefficient": random.normal(size=(4 + K) * N)}
        planes |= {"constant": random.random(3 * N), "alpha": np.tile([0.5, 0.2, 0.0], N), "W": np.zeros((D, module.width(K)))}
        turns = {"sign": np.ones((N, K), np.int8), "slope": np.arange(K + 1.0), "offset": np.arange(K + 1.0)}
        yield "sweep", {**rows, **shares, **planes, "K": K, "lam": 0.1, **turns, "steps": 5, "seed": 1}
    yield "width", {"k": K}


def chain_calls(module, random):
    chains, P = np.array([0, 1, 4, N], np.int64), 4
    S, width, y = len(chains) - 1, module.width(K), labels(random)
    U, A = random.normal(size=(N, K)), random.normal(size=(K, K))
    found = np.empty(N, np.int16)
    yield "viterbi", {"U": U, "A": A, "start": chains, "labels": found, "value": np.empty(S)}
    cost = 1.0 - np.eye(K)[y]
    sizes = np.diff(chains)
    own = np.concatenate([np.tile(y[a:b], P) for a, b in itertools.pairwise(chains)]).astype(np.int16)
    alpha = np.zeros((S, P))
    alpha[:, 0] = 1.0
    store = {"held": own, "alpha": alpha, "scale": np.ones((S, P)), "used": np.ones(S, np.int32)}
    for sparse in (False, True):
        rows, X = some_rows(random, sparse)
        rows = {"begin" if name == "start" else name: value for name, value in rows.items()}
        grams = np.concatenate([(X[a:b] @ X[a:b].T).ravel() for a, b in itertools.pairwise(chains)])
        yield "gram", {**rows, "start": chains, "out": np.empty(int((sizes**2).sum()))}
        for kind in range(5):
            settings = {"kind": kind, "beta": 0.5}
            given = {"start": chains, "y": y}
            if not sparse:
                planes = {"value": np.empty(S), "labels": found, "slope": np.empty(S), "constant": np.empty(S)}
                yield "survey", {**settings, "U": U, "A": A, "y": y, "start": chains, "cost": cost, **planes}
            stored = {**store, "scale": np.full((S, P), float(kind in (0, 4))), "offset": np.zeros((S, P))}
            stored = {name: stored[name] for name in ("held", "alpha", "scale", "offset", "used")}
            own_weights = {"theta": np.zeros((D, width)), "A": np.zeros((K, width))}
            shares_of_states = 1.0 - cost if kind == 4 else np.empty((0, K))
            steps = {"strength": np.full(S, 0.3), "delta": 0.3, "skip": -1.0, "gap": np.zeros(S), "steps": 3, "passes": 2, "seed": 1}
            moving = {"cost": cost.copy(), "shares": shares_of_states, **steps}
            yield "sweep", {**settings, **rows, **given, "grams": grams, **own_weights, **stored, **moving}
            if kind == 4:
                continue
            for made in (-1, 0, 5):
                planes = {"parts": np.zeros((S, K * (K + int(sizes.max())))), "constant": np.zeros(S), "share": np.full(S, 1.0 / S)}
                late = {"late_theta": np.zeros((D * (made >= 0), width)), "late_A": np.zeros((K * (made >= 0), width))}
                fresh = {name: value.copy() for name, value in own_weights.items()}
                order = {"grams": grams, "order": np.array([2, 0, 1])}
                yield "row_sweep", {**settings, **rows, **given, **order, **fresh, **planes, "lam": 0.3, "made": made, **late}
    yield "mixture", {"start": chains, "y": y, **store, "unary": np.zeros((N, K)), "pair": np.zeros((K, K))}
    yield "width", {"k": K}


def outcomes_calls(_, random):
    for width in (L + 1, 3 * L):
        yield (
            "games",
            {
                "outcomes": random.random((L, N)),
                "S": random.normal(size=(N, L)),
                "tolerance": 1e-9,
                "chosen": np.full((N, width), -1, np.intp),
                "Q": np.empty((N, width)),
                "P": np.empty((N, L)),
                "lower": np.empty(N),
                "upper": np.empty(N),
            },
        )


def trees_calls(_, random):
    start = np.array([0, 1, 4, 9])
    count = int(((np.diff(start) + 1) ** 2).sum())
    yield "best", {"scores": random.normal(size=count), "start": start, "value": np.empty(3), "heads": np.empty(9, np.int32)}
    own = {"scores": random.normal(size=25), "truth": np.array([2, 0, 2, 3], np.int32)}
    yield "levels", {**own, "level": np.empty(5), "heads": np.zeros((5, 4), np.int32)}


def parser_calls(_, random):
    start, S, P, D = np.array([0, 1, 4, 9]), 3, 4, 256
    truth = np.array([0, 2, 0, 2, 0, 1, 2, 3, 4], np.int32)
    held = np.concatenate([np.tile(truth[a:b], P) for a, b in ((0, 1), (1, 4), (4, 9))]).astype(np.int16)
    text = {"words": random.integers(9, size=9), "tags": random.integers(3, size=9), "start": start}
    theta = random.normal(size=D)
    arcs = int(((np.diff(start) + 1) ** 2).sum())
    used, ones = np.array([1, 3, 4], np.int32), np.ones(S)
    yield "scores", {**text, "theta": theta, "out": np.empty(arcs)}
    yield "best", {**text, "theta": theta, "value": np.empty(S), "heads": np.empty(9, np.int32)}
    found = {"value": np.empty(S), "upper": np.empty(S), "heads": np.empty(9, np.int32), "slope": np.empty(S), "constant": np.empty(S)}
    for kind in range(5):
        before = {"kind": kind, "beta": 0.5, **text, "truth": truth}
        own = {**before, "theta": theta}
        costs = np.full(44 if kind == 4 else 0, 0.5)
        yield "survey", {**own, "cost": costs, "tolerance": 1e-3, **found}
        stored = {"held": held, "alpha": np.full((S, P), 0.25), "scale": np.ones((S, P)), "offset": np.ones((S, P)), "used": used}
        game = {"cost": costs, "shares": 1.0 - costs, "strength": ones, "delta": 0.5, "skip": -1.0}
        steps = {"gap": np.full(S, np.inf), "steps": 2, "tolerance": 1e-3, "seed": 1}
        yield "sweep", {**own, **stored, "gram": np.zeros((S, P, P)), **game, **steps}
        for made in (-1, 3) if kind < 4 else ():
            late = np.zeros(D if made >= 0 else 0)
            mean = {"parts": np.zeros(arcs), "constant": np.zeros(S), "share": ones / S, "lam": 0.5, "made": made, "late": late}
            yield "mean_sweep", {**before, "order": np.array([2, 0, 1]), "theta": theta, **mean, "tolerance": 1e-3}
    yield "mixture", {**text, "truth": truth, "held": held, "weight": random.normal(size=(S, P)), "used": used, "theta": theta}
    yield "arc_mixture", {**text, "parts": random.normal(size=arcs), "share": ones, "theta": theta}


def relations_calls(_, random):
    text = {"words": random.integers(9, size=9), "tags": random.integers(3, size=9), "start": np.array([0, 1, 4, 9])}
    heads = np.array([0, 2, 0, 2, 0, 1, 2, 3, 4], np.int32)
    yield "positions", {**text, "heads": heads, "bits": 9, "out": np.empty((9, 18), np.int32)}


CALLS = {
    "arithmetic": arithmetic_calls,
    "sets": sets_calls,
    "planes": planes_calls,
    "chain": chain_calls,
    "ascent_binary": binary_calls,
    "ascent_faces": ascent_faces_calls,
    "oracle": oracle_calls,
    "ascent_dense": dual_calls,
    "ascent_row_blocks": dual_blocks_calls,
    "ascent_class_lists": dual_lists_calls,
    "corrected": corrected_calls,
    "ascent_kernel": kernel_dual_calls,
    "uma": uma_calls,
    "newton_faces": newton_calls,
    "hierarchical": hierarchical_calls,
    "label_sets": label_sets_calls,
    "subgradient": subgradient_calls,
    "newton_threshold": threshold_calls,
    "ascent_pairs": pairs_calls,
    "equal_rows": equal_rows_calls,
    "processor": processor_calls,
    "gaussian": gaussian_calls,
    "outcomes": outcomes_calls,
    "few_columns": few_columns_calls,
    "grams": grams_calls,
    "scores": scores_calls,
    "trees": trees_calls,
    "parser": parser_calls,
    "relations": relations_calls,
}


# ---- variations -------------------------------------------------------------------------------------------------------


def variations(function, name, value, random):
    """Yield (what, value, whether it must be refused) for hostile values of an argument."""
    if isinstance(value, bool):
        yield "other", not value, False
    elif isinstance(value, int):
        # room follows from the columns of sparse rows, whatever they hold
        huge = () if name in PATIENCE else (2**20 if name == "d" else INT_MAX, -INT_MAX - 1, 2**40, -(2**62))
        yield from ((f"= {each}", each, False) for each in (0, -1, *huge))
        yield "no number", "many", True
    elif isinstance(value, float):
        huge = () if name in PATIENCE else (np.inf, 1e300, 1e-300)
        yield from ((f"= {each}", each, False) for each in (0.0, -1.0, np.nan, *huge))
        yield "no number", None, True
    elif name == "progress":
        yield "no progress", "many", True
        if value is not None:
            yield "of other rows", type(value)(N + 1, 1), True
    elif not isinstance(value, np.ndarray):
        rows = (3,) if function.startswith("ascent_row_blocks") else ()  # of a block
        yield "None", None, True
        yield "of another length", type(value)(N + 1, K, *rows), True
        yield "of other classes", type(value)(N, K + 1, *rows), True
    else:
        yield from _of_arrays(function, name, value, random)


def _of_arrays(function, name, value, random):
    optional = name in OPTIONAL
    # families without parameters do not read them
    fits = (function, name) in ANY_LENGTH or (not value.size and (optional or name == "parameters"))
    for axis in range(value.ndim):
        longer = [(0, 1) if each == axis else (0, 0) for each in range(value.ndim)]
        yield f"longer along {axis}", np.pad(value, longer), not (fits or (function, name) in AT_LEAST)
        if value.shape[axis]:
            short = [slice(0, size - (each == axis)) for each, size in enumerate(value.shape)]
            yield f"shorter along {axis}", np.ascontiguousarray(value[tuple(short)]), not fits
            empty = np.empty([0 if each == axis else size for each, size in enumerate(value.shape)], value.dtype)
            yield f"empty along {axis}", empty, not (fits or (optional and axis == 0))
    yield "None", None, False
    other = np.float16 if value.dtype.kind == "f" else np.int64 if value.dtype == np.int16 else np.int16
    yield "another type", value.astype(other), True
    yield "objects", value.astype(object), True
    yield "more dimensions", value[None], True
    if value.size > 1:
        yield "strided", np.repeat(value, 2, axis=-1)[..., ::2], (function, name) not in APART
    if value.ndim > 1 and min(value.shape) > 1:
        yield "Fortran", np.asfortranarray(value), (function, name) not in APART
    frozen = value.copy()
    frozen.setflags(write=False)
    yield "read-only", frozen, False
    if value.size:
        if value.dtype.kind == "f":
            for each in (np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300, 0.0, -1.0):
                one = value.copy()
                one.flat[random.integers(value.size)] = each
                yield f"one is {each}", one, False
                yield f"all are {each}", np.full_like(value, each), False
        else:
            info = np.iinfo(value.dtype)
            for each in {-1, 100, min(INT_MAX, info.max), info.min, info.max} & set(range(max(info.min, -1), 101)) | {info.min, info.max}:
                one = value.copy()
                one.flat[random.integers(value.size)] = each
                root = name == "parent" and each == -1
                yield f"one is {each}", one, name in POSITIONS and not root
            yield "backwards", value[..., ::-1].copy(), False


# ---- running ----------------------------------------------------------------------------------------------------------


def copied(arguments):
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in arguments.items()}


def say(line):
    os.write(1, f"{line}\n".encode())


def finite(function, arguments, answer):
    """Assert that a valid call left finite numbers only."""
    for name, value in [*arguments.items(), *enumerate(answer if isinstance(answer, tuple) else [answer])]:
        if isinstance(value, (float, np.ndarray)) and np.asarray(value).dtype.kind == "f":
            assert np.isfinite(value).all(), f"{function}: {name} is not finite after a valid call"


def run(kernels, seed):
    """Try everything; return the number of calls, and raise AssertionError for one that should have been refused or should not."""
    random = np.random.default_rng(seed)
    known, tried, faults, calls = functions(kernels), set(), [], 0
    for module_name, module in modules(kernels).items():
        for name, arguments in CALLS[module_name](module, random):
            function = f"{module_name}.{name}"
            call = known[function]
            tried.add(function)
            given = list(inspect.signature(call).parameters)
            assert given == list(arguments), f"{function} takes {given}, the case has {list(arguments)}"
            say(f"{function}: a valid call")
            own = copied(arguments)
            finite(function, own, call(**own))
            for argument, value in arguments.items():
                for what, hostile, refused in variations(function, argument, value, random):
                    if what != "read-only" and isinstance(hostile, np.ndarray):
                        hostile = hostile if what in ("strided", "Fortran") else hostile.copy()
                    line = f"{function}: {argument} {what}"
                    say(line)
                    own = {**copied(arguments), argument: hostile}
                    calls += 1
                    try:
                        call(**own)
                    except REFUSALS:
                        continue
                    if refused:
                        faults.append(line)
    assert tried == known.keys(), f"no case for {sorted(known.keys() - tried)}"
    assert not faults, "not refused: " + "; ".join(faults)
    return calls


if __name__ == "__main__":
    from advcli.core.compiled import Kernels

    faulthandler.enable()
    np.seterr(all="ignore")
    done = run(Kernels(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    say(f"{done} calls were refused or harmless")
