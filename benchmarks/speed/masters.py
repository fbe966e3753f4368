"""The last master program of constraint generation, solved from nothing by our proximal Newton method, PIQP, Clarabel and HiGHS.

minimise 1/2 |theta|^2 + sum_i C s_i w_i xi_i over theta and xi, where xi_i >= r.f_i(theta) + c for every constraint (r, c) that row i has.
HiGHS gets a limit of seconds; what a solver leaves of the gap to our certified dual value is shown beside its time.
"""

import time

import clarabel
import highspy
import numpy as np
import piqp
import scipy.sparse as sp
from large_c import splits
from measure import Row, interleaved

from advcli.features.linear import LinearFeatures
from advcli.losses import make_loss
from advcli.problems.risk import Problem
from advcli.solvers.constraint_generation import _Master

NAMES = ("glass", "vehicle", "redwine")
C = 16.0
SECONDS = 60.0


def last_master(problem):
    """Return the master when no row is violated by more than 1e-3 of the loss."""
    master = _Master(problem)
    while True:
        answer = problem.loss.oracle(problem.scaled(master.F), problem.y)
        broken = np.flatnonzero(answer.value > master.slack(master.F)[0] + 1e-3)
        if len(broken) == 0:
            return master
        master.add(broken, answer.R[broken], answer.offset[broken])
        master.optimise(np.inf)


def program(master):
    """Return P, q, A, b of minimise 1/2 z'Pz + q.z subject to A z <= b, z = (theta, xi)."""
    problem = master.problem
    X, n = problem.features.X, len(problem.y)
    size, m = int(np.prod(problem.features.shape)), len(master.owner)
    rows = (X[master.owner][:, :, None] * master.r[:, None, :]).reshape(m, size)
    own = sp.csc_array((-np.ones(m), (np.arange(m), master.owner)), shape=(m, n))
    P = sp.diags_array(np.concatenate([np.ones(size), np.zeros(n)]), format="csc")
    q = np.concatenate([np.zeros(size), np.full(n, problem.C)])
    return P, q, sp.csc_array(sp.hstack([sp.csc_array(rows), own])), -master.offset


def by_piqp(P, q, A, b):
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-8
    solver.setup(P, q, None, None, sp.csc_matrix(A), np.full(len(b), -np.inf), b)
    solver.solve()
    return solver.result.x


def by_clarabel(P, q, A, b):
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    return np.array(
        clarabel.DefaultSolver(sp.csc_matrix(P), q, sp.csc_matrix(A), b, [clarabel.NonnegativeConeT(len(b))], settings).solve().x
    )


def by_highs(P, q, A, b, limit):
    model = highspy.HighsModel()
    lp, hessian = model.lp_, model.hessian_
    lp.num_col_, lp.num_row_ = len(q), len(b)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = q, np.full(len(q), -highspy.kHighsInf), np.full(len(q), highspy.kHighsInf)
    lp.row_lower_, lp.row_upper_ = np.full(len(b), -highspy.kHighsInf), b
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = A.indptr, A.indices, A.data
    hessian.dim_, hessian.format_ = len(q), highspy.HessianFormat.kTriangular
    P = sp.csc_array(P)
    P.eliminate_zeros()
    hessian.start_, hessian.index_, hessian.value_ = P.indptr, P.indices, P.data
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("time_limit", limit)
    solver.passModel(model)
    solver.run()
    return np.array(solver.getSolution().col_value)


def masters(options):
    """Rows: seconds of each peer over ours, for each data set."""
    rows = []
    for name, X, y in splits(options):
        if name not in NAMES:
            continue
        k = int(y.max()) + 1
        problem = Problem(LinearFeatures(X, k), make_loss("zero_one", k), y, 1.0 / (C * len(y)))
        master = last_master(problem)
        given = program(master)
        _, q, A, b = given
        size = len(q) - len(y)
        floor = problem.C * float(master.beta @ master.offset) - 0.5 * float(np.vdot(master.theta, master.theta))

        def ours(master=master):
            master.beta = np.zeros(len(master.owner))
            master.beta[master.first] = 1.0
            master._settle()
            master.optimise(np.inf)
            return np.concatenate([master.theta.ravel(), np.zeros(len(master.first))])

        found = {}
        peers = {
            "ours": ours,
            "PIQP": lambda given=given: by_piqp(*given),
            "Clarabel": lambda given=given: by_clarabel(*given),
            "HiGHS": lambda given=given: by_highs(*given, options.size(SECONDS, 1.0)),
        }

        def call(peer, found=found, peers=peers):
            found[peer] = peers[peer]()

        seconds = interleaved({peer: lambda peer=peer: call(peer) for peer in ("ours", "PIQP", "Clarabel")}, options.repeats)
        began = time.perf_counter()
        call("HiGHS")  # once: it takes that long
        seconds["HiGHS"] = time.perf_counter() - began
        for peer in ("PIQP", "Clarabel", "HiGHS"):
            said = []
            for each in ("ours", peer):
                theta = found[each][:size]
                slack = np.full(len(y), -np.inf)
                np.maximum.at(slack, master.owner, A[:, :size] @ theta - b)
                value = 0.5 * float(theta @ theta) + problem.C * float(slack.sum())
                said.append(f"{each} {1e3 * seconds[each]:.3g} ms, {(value - floor) / floor:.0e} above the dual")
            detail = f"{len(b)} constraints; " + "; ".join(said)
            rows.append(Row(f"{peer} / our master, {name}", seconds[peer] / seconds["ours"], detail=detail))
    return rows
