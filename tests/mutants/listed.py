"""Small wrong changes of the code, and the tests that must see them; `run.py` applies one at a time.

``old`` stands exactly once in ``file``, which test_mutants_listed.py checks on every run of the suite. A change that nobody could observe
has its reason in ``equivalent``; it is applied all the same, and those that are killed nevertheless are named.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """One change: ``tests`` are the words after ``pytest``; ``kernels`` names the modules of ``_ext`` to build again, at that ``level``."""

    file: str
    old: str
    new: str
    tests: str
    kernels: str = ""
    equivalent: str | None = None
    level: str = "portable"


BLOCK, DUAL, ORACLE = (
    "tests/compiled/test_compiled_block.py",
    "tests/compiled/test_compiled_dual.py",
    "tests/compiled/test_compiled_oracle.py",
)
SEARCH = "tests/compiled/test_compiled_search.py"
FACES, SUBGRADIENT, KERNEL_DUAL = (
    "tests/compiled/test_compiled_faces.py",
    "tests/compiled/test_compiled_subgradient.py",
    "tests/solvers/test_solvers_kernel_ascent.py",
)
FACE_STEPS = "tests/solvers/test_solvers_face_steps.py"
ASCENT_FACES = "tests/compiled/test_compiled_ascent_faces.py"
SLACKS = "tests/losses/test_losses_slacks.py"
STEPS_ON_FACES = (
    Mutant("advcli/solvers/coordinate/face_steps.py", "theta[:, :k] -= C * moments", "theta[:, :k] -= moments", f"{FACE_STEPS} -k raises"),
    Mutant(
        "advcli/solvers/coordinate/face_steps.py",
        "_unit(X, length)), B, owner",
        "_unit(X, length)), np.abs(B), owner",
        f"{FACE_STEPS} -k optimum",
    ),
    Mutant("advcli/solvers/coordinate/face_steps.py", "(R[rows, :k] != 0.0) @", "(R[rows, :k] > 9.0) @", f"{FACE_STEPS} -k side"),
    Mutant("advcli/losses/base.py", "rates -= rates", "rates = rates", f"{SLACKS} -k zero_one"),
    Mutant("advcli/losses/base.py", "costs -= costs", "costs = costs", f"{SLACKS} -k end_where"),
    Mutant("advcli/losses/hinge.py", "np.hstack([A, 1.0 - A])", "np.hstack([A, 2.0 - A])", f"{SLACKS} -k ww"),
    Mutant(
        "_ext/ascent/adv_quadratic.pxd",
        "if slack[j] + length * rate[j] < 0.0:",
        "if slack[j] + length * rate[j] < -1.0:",
        f"{ASCENT_FACES} -k slacks",
        "ascent_faces",
    ),
    Mutant(
        "_ext/ascent/adv_quadratic.pxd", "s.p[t] = s.residual[t] + length", "s.p[t] = s.residual[t] - length", ASCENT_FACES, "ascent_faces"
    ),
    Mutant("_ext/ascent/adv_quadratic.pxd", "curvature > flat * dense_dot", "curvature > 0.0 * dense_dot", ASCENT_FACES, "ascent_faces"),
    Mutant("_ext/ascent/ascent_dense.pyx", "next_check = at.next_check", "next_check = 2.0", f"{FACE_STEPS} -k pause", "ascent_dense"),
    Mutant("_ext/ascent/adv_factors.pxd", "b1 * load(two, v)", "b0 * load(two, v)", ASCENT_FACES, "ascent_faces"),
    Mutant("_ext/ascent/adv_factors.pxd", "load(two, v) + b1 * sum", "load(two, v) + b0 * sum", ASCENT_FACES, "ascent_faces"),
    Mutant("_ext/ascent/adv_factors.pxd", "] = sign * rows.values[", "] = rows.values[", ASCENT_FACES, "ascent_faces"),
    Mutant("_ext/ascent/adv_quadratic.pxd", "s.x[first + q] * square", "s.x[first + q]", ASCENT_FACES, "ascent_faces"),
    Mutant("_ext/ascent/adv_factors.pxd", "by += a[t] * f.entries", "by += f.entries", ASCENT_FACES, "ascent_faces"),
    Mutant("_ext/ascent/ascent_faces.pyx", "if fractions:", "if fractions > 1:", f"{ASCENT_FACES} -k corners", "ascent_faces"),
)
ROUNDS = "tests/compiled/test_compiled_rounds.py"
ORDERS_OF_VISITS = (
    Mutant("_ext/ascent/adv_visit.pxd", "min(2 * term.rested + 1", "min(term.rested + 1", f"{ROUNDS} -k plain", "ascent_dense"),
    Mutant("_ext/ascent/adv_visit.pxd", "if term.gap > skip:", "if False:", f"{ROUNDS} -k plain", "ascent_dense"),
    Mutant("_ext/ascent/adv_rounds.pxd", "chosen[count] = list[i]", "chosen[count] = i", f"{ROUNDS} -k plain", "ascent_dense"),
    Mutant("_ext/ascent/adv_schedule.pxd", "gap = gaps[i * stride]", "gap = gaps[0]", f"{ROUNDS} -k plain", "ascent_dense"),
    Mutant("_ext/ascent/adv_schedule.pxd", "shuffle(s.order, count, &s.state)", "pass", f"{ROUNDS} -k plain", "ascent_dense"),
    Mutant("advcli/core/compiled.py", "d <= _SHORT_FEATURES", "True", f"{DUAL} -k short"),
)
LISTS = "tests/compiled/test_compiled_lists.py"
LISTS_OF_CLASSES = (
    Mutant("_ext/ascent/ascent_class_lists.pyx", "value = 1.0 + a.level[i] - own", "pass", f"{LISTS} -k bounds", "ascent_class_lists"),
    Mutant(
        "_ext/ascent/ascent_class_lists.pyx",
        "a.level[i] = select(top, whose, found, most)",
        "select(top, whose, found, most)",
        f"{LISTS} -k bounds",
        "ascent_class_lists",
    ),
    Mutant(
        "_ext/ascent/ascent_class_lists.pyx",
        "if a.kp > PADS else a.kp",
        "if a.kp > 4 else a.kp",
        f"{LISTS} -k bounds",
        "ascent_class_lists",
        equivalent="the portable level has no steps compiled for one kp",
    ),
    Mutant(
        "_ext/ascent/ascent_class_lists.pyx",
        "first + cut(count, a.threads, t + 1)",
        "first + cut(count, a.threads, t + 1) - 1",
        f"{LISTS} -k threads",
        "ascent_class_lists",
    ),
)
BLOCKS, MAPPED = "tests/compiled/test_compiled_blocks.py", "tests/data/test_data_mapped.py"
IN_BLOCKS = "tests/learners/test_learners_blocks.py"
ROWS_IN_BLOCKS = (
    Mutant("_ext/ascent/adv_blocks.pxd", "y[first + i]] = -total", "y[first + i]] = total", f"{BLOCKS} -k supports", "ascent_row_blocks"),
    Mutant("_ext/support/adv_stored.pxd", "i = x.at[i]", "i = i", f"{BLOCKS} -k listed", "ascent_row_blocks"),
    Mutant(
        "_ext/ascent/adv_blocks.pxd",
        "if size != s.sizes[block]:",
        "if size > s.sizes[block]:",
        f"{BLOCKS} -k supports",
        "ascent_row_blocks",
    ),
    Mutant("_ext/ascent/ascent_row_blocks.pyx", "run.term[i].gap = gaps[j]", "pass", f"{BLOCKS} -k plain", "ascent_row_blocks"),
    Mutant(
        "_ext/ascent/ascent_row_blocks.pyx",
        "b.terms[base + i].hint = -1.0",
        "b.terms[base + i].hint = 0.0",
        f"{BLOCKS} -k plain",
        "ascent_row_blocks",
        equivalent="where the search for a threshold starts",
    ),
    Mutant(
        "_ext/ascent/adv_schedule.pxd",
        "adv_active = 0.02",
        "adv_active = 0.2",
        f"{BLOCKS} -k plain",
        "ascent_row_blocks",
    ),
    Mutant(
        "_ext/ascent/ascent_row_blocks.pyx",
        "a.run.scale = m.sigma * m.scale",
        "a.run.scale = m.scale",
        f"{BLOCKS} -k plain",
        "ascent_row_blocks",
    ),
    Mutant(
        "_ext/support/adv_stored.pxd",
        "out[own] = 1.0",
        "out[own] = 2.0",
        "tests/compiled/test_compiled_scores.py -k standardised",
        "scores",
    ),
    Mutant("advcli/problems/row_blocks.py", "* part.n if part.n else 0.0", "if part.n else 0.0", f"{IN_BLOCKS} -k optimum"),
    Mutant(
        "advcli/core/row_blocks.py", "(part_mean - mean) ** 2 * (n * m / (n + m))", "(part_mean - mean) ** 2 * m", f"{IN_BLOCKS} -k optimum"
    ),
    Mutant(
        "advcli/problems/row_blocks.py",
        "point.write(rows, self.loss.project(R.read(rows), self.y[rows].astype(np.intp)))",
        "pass",
        f"{IN_BLOCKS} -k outside",
    ),
    Mutant("advcli/data/sources/mapped.py", "if not np.isfinite(raw).all():", "if False:", f"{MAPPED} -k wrong"),
)
TOP_K = "tests/losses/test_losses_top_k.py"
SETS = "tests/losses/test_losses_label_sets.py"
SETS_AT_A_PRICE = (
    Mutant("_ext/families/adv_label_sets.pxd", "theta = 1.0 / j", "theta = min(theta, 0.5)", f"{SETS} -k value", "oracle"),
    Mutant(
        "_ext/families/adv_label_sets.pxd", "moving += x < flat or x > flat + 1.0", "moving += x < flat", f"{BLOCK} -k label_sets", "oracle"
    ),
    Mutant("advcli/losses/label_sets.py", "< 0.0)).size", "< -1.0)).size", f"{SETS} -k refused"),
    Mutant("advcli/metrics.py", "== _counts(true)))", ">= 0))", f"{SETS} -k certified"),
)
INTERIOR, QUASI = "tests/solvers/test_solvers_smooth_interior.py", "tests/solvers/test_solvers_smooth_quasi.py"
ENTROPY, DECIDED = "tests/losses/test_losses_entropy.py", "tests/losses/test_losses_decided.py"
WITHOUT_KERNELS = (
    Mutant("advcli/losses/entropy.py", "return -self.exponent * np.expm1", "return -np.expm1", f"{ENTROPY} -k attain"),
    Mutant("advcli/losses/entropy.py", "D * ((b - 1.0) / b)", "D * ((b - 1.0) * b)", "tests/testing/test_testing_checks.py -k entropy"),
    Mutant("advcli/solvers/newton/smooth.py", "+ residual / self.problem.lam", "- residual / self.problem.lam", f"{ENTROPY} -k certified"),
    Mutant("advcli/solvers/newton/smooth_interior.py", "self.h = self.total**2 +", "self.h = self.total**2 -", f"{INTERIOR} -k linear"),
    Mutant("advcli/solvers/newton/smooth_interior.py", "* norm[:, None] / self.alpha", "* norm[:, None]", f"{INTERIOR} -k linear"),
    Mutant("advcli/solvers/newton/smooth_interior.py", "+ power * x - total", "- total", f"{INTERIOR} -k curve"),
    Mutant("advcli/solvers/newton/smooth.py", "newton.passes + smooth_interior.STEP", "newton.passes", f"{INTERIOR} -k allowed"),
    Mutant("advcli/solvers/newton/smooth_descent.py", "entropies = place.level -", "entropies = place.level +", f"{ENTROPY} -k certified"),
    Mutant("advcli/solvers/newton/smooth_quasi.py", "shares[-1] * change", "shares[-1] * moved", f"{QUASI} -k direction"),
    Mutant("advcli/solvers/newton/smooth_quasi.py", "Q, Q)", "Q, D)", f"{QUASI} -k class"),
    Mutant("advcli/solvers/newton/smooth_quasi.py", "if not after.primal < place.primal", "if False", f"{QUASI} -k rises"),
    Mutant("advcli/losses/consistency.py", "0.0 if i in best else np.inf", "np.inf", f"{DECIDED} -k random"),
    Mutant(
        "advcli/verify/entropies.py",
        "b * (norm - 1.0) +",
        "",
        "tests/verify/test_verify_entropies.py",
        equivalent="the sum where the search ends is 1 but for rounding, which the next term covers as well; this one proves it",
    ),
    Mutant(
        "advcli/statistics/moment_bounds.py",
        "2.0 * scaled.size / delta",
        "0.1 / delta",
        "tests/statistics/test_statistics_moment_bounds.py",
    ),
    Mutant(
        "advcli/statistics/conformal.py", "(n + 1) * (1.0 - level)", "n * (1.0 - level)", "tests/statistics/test_statistics_conformal.py"
    ),
    Mutant("advcli/learners/objectives.py", "- 0.5 * self.mu", "- self.mu", "tests/learners/test_learners_objectives.py -k gradients"),
)
KERNELS = (
    # K guesses
    Mutant("_ext/families/adv_top_k.pxd", "return low if m <= K", "return low if m <= K + 1", f"{TOP_K} -k all_sets", "oracle"),
    Mutant("_ext/families/adv_top_k.pxd", "low = maximum(b, kp) - 1.0", "low = maximum(b, kp) - 9.0", TOP_K, "oracle"),
    Mutant("_ext/families/adv_top_k.pxd", "t = (left - right)", "t = (left + right)", f"{TOP_K} -k distribution", "oracle"),
    Mutant("_ext/families/adv_top_k.pxd", "if low >= mu:", "if low >= mu + 9.0:", f"{BLOCK} -k top_k", "oracle"),
    Mutant("_ext/families/adv_top_k.pxd", "vmax(vmin(d, upper), d - one)", "vmin(d, upper)", f"{BLOCK} -k top_k", "oracle"),
    Mutant("_ext/families/adv_top_k.pxd", "if r[y] == 0.0 and tau == -1.0", "if tau == -1.0", f"{DUAL} -k far_ahead", "ascent_dense"),
    Mutant("advcli/losses/top_k.py", "if max(n_classes, 2) <= K:", "if max(n_classes, 2) < K:", f"{TOP_K} -k refused"),
    Mutant("advcli/metrics.py", "(np.arange(n_classes) < y_true", "(np.arange(n_classes) > y_true", "tests/metrics/test_metrics_top_k.py"),
    # the zero-one family
    Mutant("_ext/families/adv_zero_one.pxd", "m = splat(-1.0)", "m = splat(-0.9)", f"{DUAL} -k 'at_rest'", "ascent_dense"),
    Mutant("_ext/families/adv_zero_one.pxd", "if near == 1:", "if near <= 2:", f"{DUAL} -k 'at_rest'", "ascent_dense"),
    Mutant("_ext/families/adv_zero_one.pxd", "if r[y] == 0.0 and skip >= 0.0:", "if skip >= 0.0:", DUAL, "ascent_dense"),
    Mutant("_ext/families/adv_zero_one.pxd", "fabs(total - wanted) < 8.9e-16", "fabs(total - wanted) <= 8.9e-16", DUAL, "ascent_dense"),
    Mutant(
        "_ext/families/adv_zero_one.pxd", "fabs(total - wanted) < 8.9e-16", "fabs(total - wanted) < 1.0", f"{BLOCK} -k zero_one", "oracle"
    ),
    Mutant(
        "_ext/families/adv_zero_one.pxd",
        "if near == 1:",
        "if near == 0:",
        f"{DUAL} -k 'at_rest'",
        "ascent_dense",
        equivalent="never ends early: the full step finds the same gap of 0 and moves nothing, only slower",
    ),
    Mutant(
        "_ext/families/adv_zero_one.pxd",
        "gap = tau + largest - vsum(inner)",
        "gap = tau + 1.0 - vsum(inner)",
        f"{BLOCK} -k 'zero_one'",
        "oracle",
    ),
    Mutant(
        "_ext/families/adv_zero_one.pxd",
        "two_thresholds(g, kp, 1.0, &u, 1.0 + w, &mu)",
        "two_thresholds(g, kp, 1.0, &u, 1.0 + 2.0 * w, &mu)",
        f"{BLOCK} -k zero_one",
        "oracle",
    ),
    Mutant(
        "_ext/families/adv_zero_one.pxd",
        "counted_threshold(g, of_g, s.k, kp, 1.0 + w)",
        "counted_threshold(g, of_g, s.k, kp, 1.0 + 2.0 * w)",
        f"{BLOCK} -k any_size",
        "oracle",
    ),
    Mutant(
        "_ext/support/adv_simd.pxd",
        "splat(radius) + splat(more)",
        "splat(0.5 * radius) + splat(more)",
        f"{BLOCK} -k any_size",
        "oracle",
    ),
    Mutant("_ext/support/adv_simd.pxd", "more = k * (1.0 + 2e-15)", "more = k", f"{BLOCK} -k any_size", "oracle"),
    Mutant("_ext/families/adv_zero_one.pxd", "c[0] = 1.0 - largest", "c[0] = 1.0 + largest", f"{ORACLE} -k 'zero_one'", "oracle"),
    Mutant(
        "_ext/families/adv_zero_one.pxd",
        "state[j] = TIED if g[j] > u else",
        "state[j] = FREE if g[j] > u else",
        f"{BLOCK} {FACES} -k 'lanes or zero_one'",
        "oracle",
    ),
    Mutant("_ext/families/adv_zero_one.pxd", "1.0 + (f[j] - f[y]) != top", "1.0 + (f[j] - f[y]) == top", f"{ORACLE} -k 'cs'", "oracle"),
    # many rows at once
    Mutant(
        "_ext/families/oracle.pyx",
        "if kind == ZERO_ONE and not gaps and k <= BLOCKS:",
        "if kind == ZERO_ONE and not gaps and k < 0:",
        f"{BLOCK} -k lanes",
        "oracle",
    ),
    Mutant(
        "_ext/families/oracle.pyx",
        "if kind == ZERO_ONE and not keep and n > 0:",
        "if kind == ZERO_ONE and not keep and n < 0:",
        f"{BLOCK} -k lanes",
        "oracle",
    ),
    Mutant(
        "_ext/families/adv_lanes.pxd",
        "less = one_less - load(weight, group)",
        "less = one_less + load(weight, group)",
        f"{BLOCK} -k lanes",
        "oracle",
    ),
    Mutant(
        "_ext/families/adv_lanes.pxd",
        "if k <= NETWORK:",
        "if k <= NETWORK + 2:",
        f"{ORACLE} -k 'zero_one'",
        "oracle",
        equivalent="two ways to the same threshold; which is faster is all that NETWORK decides",
    ),
    Mutant(
        "_ext/families/adv_lanes.pxd",
        "level = level + (s - one) / c",
        "level = level + (s - one) / (c + one)",
        f"{ORACLE} -k 'zero_one'",
        "oracle",
    ),
    # line searches, and the sums at their ends
    Mutant("_ext/families/oracle.pyx", "total -= along_row(a, i, a.R + i * k)", "total += along_row(a, i, a.R + i * k)", SEARCH, "oracle"),
    Mutant("_ext/families/oracle.pyx", "fabs(a.R[j] - low[j]) <= 1e-14", "fabs(a.R[j] - low[j]) <= 1e-1", SEARCH, "oracle"),
    Mutant("_ext/families/adv_lanes.pxd", "t.own[at] = b[y[i]]", "t.own[at] = 0.0", SEARCH, "oracle"),
    Mutant(
        "_ext/families/adv_lanes.pxd",
        "offset = offset + load(share, group) * (one - b)",
        "offset = offset + (one - b)",
        f"{SEARCH} -k sums",
        "oracle",
    ),
    # rows whose label leads
    Mutant("_ext/families/adv_lanes.pxd", "scale * (load(r, j) - mine)", "scale * load(r, j)", f"{BLOCK} -k leads", "oracle"),
    Mutant("_ext/families/adv_lanes.pxd", "return found == k - 1", "return found >= k - 2", f"{BLOCK} -k leads", "oracle"),
    Mutant(
        "_ext/families/adv_lanes.pxd",
        "scale * (load_first(r, j) - mine)",
        "scale * load_first(r, j)",
        f"{BLOCK} -k leads",
        "oracle",
        level="avx2",
    ),
    Mutant("_ext/families/adv_lanes.pxd", "return found == k\n", "return True\n", f"{SEARCH} -k without_a_loss", "oracle"),
    # the other surrogates
    Mutant(
        "_ext/families/adv_hinge.pxd",
        "state[y] = FREE if relative else TIED",
        "state[y] = FIXED",
        f"{FACES} -k 'derivative and (ww or llw)'",
        "oracle",
    ),
    Mutant("_ext/families/adv_hinge.pxd", "slope = -1.0 if relative else 1.0 / k", "slope = -1.0", f"{BLOCK} -k 'llw'", "oracle"),
    Mutant(
        "_ext/families/adv_hinge.pxd",
        "if positive == above and full == beyond:",
        "if positive == above:",
        f"{BLOCK} -k 'ww or llw'",
        "oracle",
    ),
    Mutant(
        "_ext/families/adv_hinge.pxd",
        "vmin(vmax(v, zero), one) - load(a, j)",
        "vmin(vmax(v, zero), one)",
        f"{BLOCK} -k 'ww or llw'",
        "oracle",
    ),
    Mutant(
        "_ext/families/adv_abstain.pxd",
        "return min(1.0 - maximum(q, s.kp), s.alpha)",
        "return 1.0 - maximum(q, s.kp)",
        f"{ORACLE} -k 'abstain'",
        "oracle",
    ),
    Mutant(
        "_ext/families/adv_convex.pxd",
        "if here <= there:",
        "if here < there:",
        f"{ORACLE} -k 'absolute or convex'",
        "oracle",
        equivalent="where two neighbouring rows have one value both are the minimum",
    ),
    # the ascents
    Mutant(
        "_ext/ascent/adv_visit.pxd",
        "(1.0 if run.sample == NULL else run.sample[i]) * (1.0 if run.cost == NULL else run.cost[i]) * gap",
        "gap",
        f"{DUAL} -k 'meet or weights'",
        "ascent_dense",
        equivalent="the gap of a visit only chooses what is visited next; the certificate of a pass decides",
    ),
    Mutant(
        "_ext/ascent/adv_visit.pxd",
        "splat(products[p]) * change",
        "splat(products[0]) * change",
        f"{DUAL} -k 'dense_rows'",
        "ascent_dense",
        level="avx2",
    ),
    Mutant(
        "_ext/ascent/adv_visit.pxd", "moved[moves] = x[q]", "moved[moves] = x[0]", f"{DUAL} -k 'dense_rows'", "ascent_dense", level="avx2"
    ),
    Mutant(
        "_ext/ascent/adv_visit.pxd",
        "take_step(run, i, -weight * run.scale,",
        "take_step(run, i, -run.scale,",
        f"{DUAL} -k 'dense_rows'",
        "ascent_dense",
        level="avx2",
    ),
    Mutant(
        "_ext/ascent/adv_visit.pxd",
        "for q in range(moves):",
        "for q in range(moves - 1):",
        f"{DUAL} -k 'dense_rows'",
        "ascent_dense",
        level="avx2",
    ),
    Mutant(
        "_ext/support/adv_linear.pxd",
        "change[m * vectors + q]\n        if moves > 0:",
        "change[q]\n        if moves > 0:",
        f"{DUAL} -k 'dense_rows'",
        "ascent_dense",
        level="avx2",
    ),
    Mutant(
        "_ext/support/adv_linear.pxd",
        "number = splat(right[m][j])",
        "number = splat(right[0][j])",
        f"{DUAL} -k 'dense_rows'",
        "ascent_dense",
        level="avx2",
    ),
    Mutant(
        "_ext/support/adv_linear.pxd",
        "b2 = b2 + a * load_first(z[2] + j, rest)",
        "pass",
        f"{DUAL} -k 'dense_rows'",
        "ascent_dense",
        level="avx2",
    ),
    Mutant(
        "_ext/families/adv_zero_one.pxd",
        "return 1.0 + tau\n\n\ncdef inline double zero_one_offset",
        "return tau\n\n\ncdef inline double zero_one_offset",
        DUAL,
        "ascent_dense",
    ),
    Mutant(
        "_ext/ascent/adv_visit.pxd",
        "next = list[b + 1] if b + 1 < count else i",
        "next = i",
        f"{DUAL} -k 'one_row and 130'",
        "ascent_dense",
    ),
    Mutant(
        "_ext/support/adv_linear.pxd",
        "    if d & 1:\n        dense_chains(x + j, z + j,",
        "    if d & 1:\n        dense_chains(x + j, x + j,",
        f"{DUAL} -k 'dense_rows'",
        "ascent_dense",
    ),
    Mutant(
        "_ext/support/adv_linear.pxd",
        "sums[q] = sums[q] + splat(z) * value",
        "sums[q] = sums[q] + splat(x) * value",
        f"{DUAL} -k 'dense_rows'",
        "ascent_dense",
    ),
    Mutant(
        "_ext/support/adv_simd.pxd",
        "if active == previous and others == before:",
        "if active == previous:",
        f"{BLOCK} -k zero_one",
        "oracle",
    ),
    Mutant(
        "_ext/ascent/adv_visit.pxd",
        "weight * term.square * run.scale / cost",
        "term.square * run.scale / cost",
        f"{DUAL} -k 'meet'",
        "ascent_dense",
    ),
    Mutant(
        "_ext/ascent/adv_visit.pxd",
        "dual[0] = offsets / run.mass - 0.5 * run.lam * square",
        "dual[0] = offsets / run.mass - 0.25 * run.lam * square",
        f"{DUAL} -k 'meet'",
        "ascent_dense",
    ),
    Mutant(
        "_ext/ascent/ascent_kernel.pyx",
        "            gap[i] = weight * cost * own",
        "            gap[i] = weight * own",
        f"{KERNEL_DUAL} -k survey",
        "ascent_kernel",
    ),
    Mutant(
        "_ext/ascent/ascent_kernel.pyx", "f[c] = F[c * stride] / cost", "f[c] = F[c * stride]", f"{KERNEL_DUAL} -k survey", "ascent_kernel"
    ),
    *(
        Mutant("_ext/ascent/ascent_kernel.pyx", right, wrong, f"{KERNEL_DUAL} -k '{test}'", "ascent_kernel")
        for right, wrong, test in (
            ("run.gap[at] = weight * cost * gap[lane]", "run.gap[at] = weight * gap[lane]", "python_one"),
            ("run.gap[i] = weight * cost * gap\n        total", "run.gap[i] = cost * gap\n        total", "python_one"),
            ("cdef double WORTH = 0.5", "cdef double WORTH = 0.6", "python_one"),
            ("factor = splat(-weight * run.scale)", "factor = splat(-run.scale)", "python_one"),
            ("store(scores, v, s + other)", "store(scores, v, s)", "python_one"),
            ("                if known[a]:", "                if False:", "python_one"),
            ("v0 += t * load(row, 0)", "v0 = t * load(row, 0)", "python_one"),
            ("for i in range(j - begin, VECTORS * LANES):", "for i in range(VECTORS * LANES):", "rows_of_K"),
            ("target[e] = out[e * stride + b]", "target[e] = out[b * stride + e]", "grows"),
            ("sum = sum + x * splat(v[first + a])", "sum = sum + x * splat(v[first])", "one_read"),
            (
                "most = vmax(most, vmax(x, zero - x) - beside * splat(root[first + a]))",
                "most = vmax(most, x - beside * splat(root[first + a]))",
                "one_read",
            ),
        )
    ),
    Mutant(
        "_ext/ascent/ascent_kernel.pyx",
        "inners += weight * cost * inner",
        "inners += weight * inner",
        f"{KERNEL_DUAL} -k survey",
        "ascent_kernel",
    ),
)

ESTIMATORS = "tests/learners/test_learners_estimators_problem.py"
GAPS = "tests/verify/test_verify_gap.py"
GUARANTEE, REFEREES = "tests/evaluation/test_evaluation_guarantee.py", "tests/solvers/test_solvers_referee.py"
SETS_OF_LOSSES, SETS_OF_LEARNERS = (
    "tests/losses/test_losses_contract.py -k 'feasible or brought'",
    "tests/learners/test_learners_certificates.py",
)
REFEREE = (
    # the verdict
    Mutant("advcli/problems/certificate.py", "gap = primal - dual", "gap = abs(primal - dual)", REFEREES),
    Mutant(
        "advcli/problems/certificate.py",
        "relative = gap / scale",
        "relative = gap / (1.0 + scale)",
        f"{GUARANTEE} {ESTIMATORS} -k 'linear_programs or negative_objective'",
    ),
    Mutant("advcli/problems/certificate.py", "TOLERANCE = 2.0**20", "TOLERANCE = 2.0**32", REFEREES),
    Mutant("advcli/problems/certificate.py", "refused = not outside <= TOLERANCE or", "refused = outside > TOLERANCE or", REFEREES),
    Mutant("advcli/problems/certificate.py", "if refused:\n        dual =", "if False:\n        dual =", REFEREES),
    Mutant("advcli/problems/certificate.py", "scale = abs(primal) if refused else gap_scale(", "scale = gap_scale(", REFEREES),
    Mutant("advcli/problems/certificate.py", "bool(relative <= tol and not refused and not negative)", "bool(relative <= tol)", REFEREES),
    Mutant(
        "advcli/problems/certificate.py",
        "bool(relative <= tol and not refused and not negative)",
        "bool(relative <= tol and not negative)",
        REFEREES,
        equivalent="a refused dual point is -inf, so its gap is infinite and above every tolerance",
    ),
    Mutant("advcli/problems/certificate.py", "0.0 if -_NOISE < relative < 0 else relative", "max(0.0, relative)", REFEREES),
    Mutant("advcli/problems/certificate.py", "R, outside = problem.feasible(solution.R)", "R, outside = solution.R, 0.0", REFEREES),
    Mutant("advcli/problems/certificate.py", "dual = problem.dual(R)", "dual = problem.dual(solution.R)", REFEREES),
    Mutant(
        "advcli/problems/certificate.py",
        "better = solution if certificate.primal <= empty else",
        "better = solution if not certificate.primal > empty else",
        "tests/solvers/test_solvers_scales.py -k settling",
    ),
    Mutant(
        "advcli/problems/certificate.py",
        "better if certificate.dual >= problem.dual(R) else replace(better, R=R)",
        "better",
        "tests/solvers/test_solvers_scales.py -k settling",
    ),
    # the objective
    Mutant(
        "advcli/problems/risk.py",
        "return 0.5 * self.lam * self.features.square_norm(theta)",
        "return self.lam * self.features.square_norm(theta)",
        GUARANTEE,
    ),
    Mutant("advcli/problems/risk.py", "+ self.ridge(theta)\n\n    def dual_gradient", "\n\n    def dual_gradient", GUARANTEE),
    Mutant(
        "advcli/problems/risk.py",
        "return primal if primal > 0 else -dual",
        "return abs(primal) if primal > 0 else dual",
        f"{ESTIMATORS} -k negative_objective",
    ),
    Mutant("advcli/problems/risk.py", "theta = theta - theta.mean(axis=1, keepdims=True)", "pass", f"{GAPS} -k own"),
    Mutant(
        "advcli/problems/risk.py",
        "deviation = gradient[:, :, None] - gradient[:, None, :]",
        "deviation = np.abs(gradient)[:, :, None] + 0.0 * gradient[:, None, :]",
        "tests/solvers/test_solvers_box.py -k llw",
    ),
    Mutant("advcli/problems/risk.py", "return 1e-6 * self.unit if", "return 0.0 if", "tests/solvers/test_solvers_box.py -k value_zero"),
    Mutant(
        "advcli/problems/risk.py",
        "- self.dual(self.nothing())",
        "",
        "tests/solvers/test_solvers_box.py -k constant_cost",
    ),
    Mutant(
        "advcli/problems/risk.py",
        "return self.summed_loss(F) / self.n",
        "return self.summed_loss(F) / len(self.y)",
        f"{ESTIMATORS} -k weight",
    ),
    Mutant(
        "advcli/problems/risk.py",
        "R * self.sample_weight[:, None] if isinstance(R, np.ndarray)",
        "R if isinstance(R, np.ndarray)",
        "tests/learners/test_learners_weights.py",
    ),
    Mutant("advcli/losses/weighted.py", "return w * self.base.expected_cost(", "return self.base.expected_cost(", GUARANTEE),
    # the set of dual points
    Mutant("advcli/problems/risk.py", "if far > ROUNDING * k:", "if False:", REFEREES),
    Mutant("advcli/problems/risk.py", "distances.append(self._broken(point))", "distances.append(0.0)", REFEREES),
    Mutant("advcli/problems/risk.py", "distances.append(1.0 - self._into_box(point))", "distances.append(0.0)", REFEREES),
    Mutant("advcli/problems/risk.py", "float(np.max(distances))", "float(max(distances))", REFEREES),
    Mutant("advcli/problems/risk.py", "if not self._broken(R) <= self._rounding:", "if False:", REFEREES),
    Mutant("advcli/problems/risk.py", 'return mean if self._into_box(R) == 1.0 else float("-inf")', "return mean", REFEREES),
    Mutant("advcli/problems/risk.py", "R * (t * (1.0 - 1e-12))", "R", REFEREES),
    Mutant("advcli/losses/base.py", "np.maximum(np.abs(total), -Q.min(axis=0))", "np.abs(total)", SETS_OF_LOSSES),
    Mutant("advcli/losses/base.py", "np.maximum(np.abs(total), -Q.min(axis=0))", "-Q.min(axis=0)", SETS_OF_LOSSES),
    Mutant("advcli/losses/base.py", "Q = np.maximum(plus_own(R, y), 0.0)", "Q = np.maximum(plus_own(R, y), -1.0)", SETS_OF_LOSSES),
    Mutant(
        "advcli/losses/hinge.py",
        "np.maximum(np.maximum(-A.min(axis=0), A.max(axis=0) - 1.0), np.abs(total))",
        "np.maximum(-A.min(axis=0), np.abs(total))",
        REFEREES,
    ),
    Mutant(
        "advcli/losses/hinge.py",
        "np.maximum(np.maximum(-A.min(axis=0), A.max(axis=0) - 1.0), np.abs(total))",
        "np.maximum(-A.min(axis=0), A.max(axis=0) - 1.0)",
        REFEREES,
    ),
    Mutant("advcli/losses/hinge.py", "return _outside(R - R[np.arange(len(y)), y][:, None], R)", "return _outside(R, R)", REFEREES),
    Mutant("advcli/learners/hierarchical/leaf_problem.py", "(total - 1.0).max(initial=0.0)])", "])", SETS_OF_LEARNERS),
    Mutant(
        "advcli/learners/hierarchical/leaf_problem.py",
        "shares.data /= np.repeat(np.maximum(np.asarray(shares.sum(axis=1)).ravel(), 1.0), counts)",
        "shares.data *= 1.0",
        SETS_OF_LEARNERS,
    ),
    Mutant("advcli/learners/hierarchical/classifier.py", "outside=fit.outside, **", "outside=0.0, **", SETS_OF_LEARNERS),
    Mutant("advcli/learners/hierarchical/set_problem.py", "point[lost] = self.true[lost].toarray()", "pass", SETS_OF_LEARNERS),
    Mutant("advcli/learners/hierarchical/set_problem.py", "distances.append(float(off.max()))", "distances.append(0.0)", SETS_OF_LEARNERS),
    Mutant(
        "advcli/learners/correction.py",
        "outside=float(problem.loss.infeasibility(np.ascontiguousarray(problem.R[:, :k]), y).max())",
        "outside=0.0",
        SETS_OF_LEARNERS,
    ),
)

CELLS, METRICS = "tests/evaluation/test_evaluation_real_cells.py", "tests/metrics/test_metrics_values.py"
OF_INPUTS = "tests/evaluation/test_evaluation_inputs.py"
RUNNER_TESTS, LABELS = "tests/evaluation/test_evaluation_runner.py", "tests/evaluation/test_evaluation_training_labels.py"
WEIGHTED = f"{CELLS} -k 'weights and script'"
RECIPE = (
    # which rows, whose labels, what weights
    Mutant("advcli/evaluation/fits.py", "recipe.search(recipe.part(splits[0][0]))", "recipe.search(recipe.part(splits[0][1]))", CELLS),
    Mutant("advcli/evaluation/fits.py", "recipe.search(recipe.part(splits[0][0]))", "recipe.search(recipe.part())", CELLS),
    Mutant("advcli/evaluation/fits.py", "recipe.search(recipe.part(splits[0][0]))", "recipe.search(recipe.part(splits[-1][0]))", CELLS),
    Mutant(
        "advcli/evaluation/runner.py",
        "recipe.part(split[0]), recipe.part(split[1])",
        "recipe.part(split[0]), recipe.part(split[0])",
        CELLS,
    ),
    Mutant(
        "advcli/evaluation/runner.py",
        "recipe.part(split[0]), recipe.part(split[1])",
        "recipe.part(split[1]), recipe.part(split[1])",
        CELLS,
    ),
    Mutant(
        "advcli/evaluation/recipe.py", "standardiser = Standardiser().fit(X)", "standardiser = Standardiser().fit(self.dataset.X)", CELLS
    ),
    Mutant("advcli/evaluation/recipe.py", 'if self.protocol.standardise != "none":', "if True:", f"{CELLS} -k 'script or model'"),
    Mutant(
        "advcli/evaluation/recipe.py",
        "test = replace(test, X=fitted.rows(test.X))",
        "test = replace(test, X=fitted.standardiser.fit(test.X).transform(test.X) if fitted.standardiser else test.X)",
        CELLS,
    ),
    Mutant("advcli/evaluation/recipe.py", "self._value(name, test, predicted.codes", "self._value(name, test, test.y", CELLS),
    Mutant(
        "advcli/evaluation/recipe.py",
        'self.seeds(number).of("fit")',
        'self.seeds(1).of("fit")',
        f"{CELLS} -k seed",
    ),
    Mutant(
        "advcli/evaluation/recipe.py",
        "self.dataset.classes, self.seeds(number))",
        "self.dataset.classes, self.seeds(1))",
        f"{CELLS} -k noise",
    ),
    Mutant(
        "advcli/evaluation/recipe.py",
        "= self.labels(part.encoded()[0], number).view(method)",
        "= self.labels(part.encoded()[0], ALL).view(method)",
        f"{CELLS} -k noise",
    ),
    Mutant("advcli/evaluation/recipe.py", "if weight is None else weight * rows", "if True else weight", f"{CELLS} -k clean"),
    Mutant("advcli/evaluation/recipe.py", "if weight is None else weight * rows", "if weight is None else weight", f"{CELLS} -k clean"),
    Mutant("advcli/evaluation/recipe.py", "part = replace(part, y=codes)", "part = Part(part.X, codes)", WEIGHTED),
    Mutant("advcli/evaluation/recipe.py", "weight, n_train = part.weight,", "weight, n_train = None,", WEIGHTED),
    Mutant("advcli/evaluation/recipe.py", "part = part if rows is None else part[rows]", "part = part", f"{LABELS} {RUNNER_TESTS}"),
    Mutant(
        "advcli/evaluation/runner.py",
        "recipe.fit(train, hyper, number)",
        "recipe.fit(train, dict(list(hyper.items())[:1]), number)",
        f"{CELLS} -k kernel",
    ),
    Mutant(
        "advcli/evaluation/recipe.py",
        "learner = method.at(hyper).make(self.n_classes, seed)\n        if",
        "learner = method.at(hyper).in_search.make(self.n_classes, seed)\n        if",
        f"{RUNNER_TESTS} -k rows_of_one",
    ),
    Mutant(
        "advcli/learners/method.py",
        '"tol": solver.get("search_tol") or solver["tol"]',
        '"tol": solver["tol"]',
        f"{CELLS} -k seed",
    ),
    # the expected losses beside the guarantee
    Mutant("advcli/learners/game.py", "return float(weight @ costs / weight.sum())", "return float(costs.mean())", GUARANTEE),
    Mutant(
        "advcli/learners/game.py",
        "y, weight if loss.example_weights else None)\n        if weight is None",
        "y, None)\n        if weight is None",
        GUARANTEE,
    ),
    Mutant(
        "advcli/evaluation/recipe.py",
        "learner.mean_cost(fitted.examples(train.X), of_train, fitted.weight)",
        "learner.mean_cost(X, test.costs if costly else truth, weight)",
        GUARANTEE,
    ),
    Mutant(
        "advcli/evaluation/recipe.py",
        "learner.mean_cost(fitted.examples(train.X), of_train, fitted.weight)",
        "learner.mean_cost(fitted.examples(train.X), train.y, fitted.weight)",
        f"{GUARANTEE} -k learned_from",
    ),
    Mutant(
        "advcli/evaluation/recipe.py",
        "learner.mean_cost(X, test.costs if costly else truth, weight)",
        "learner.mean_cost(fitted.examples(train.X), of_train, fitted.weight)",
        GUARANTEE,
    ),
    Mutant(
        "advcli/evaluation/recipe.py",
        "learner.mean_cost(X, test.costs if costly else truth, weight)",
        "learner.mean_cost(X, test.costs if costly else truth, None if train.weight is None else train.weight[: len(test.y)])",
        GUARANTEE,
    ),
    # the key of a cell
    Mutant(
        "advcli/evaluation/cell.py",
        '"weights": None if dataset.example_weight is None else _digest(dataset.example_weight),',
        '"weights": None,',
        f"{CELLS} -k key",
    ),
    Mutant("advcli/evaluation/cell.py", '"sha256": dataset.sha256,', "", f"{RUNNER_TESTS} -k key"),
    Mutant("advcli/evaluation/cell.py", '"seed": int(self.seed),\n            "noise"', '"noise"', f"{RUNNER_TESTS} -k key"),
    Mutant("advcli/evaluation/cell.py", '"noise": noise,', "", f"{RUNNER_TESTS} -k key"),
    Mutant("advcli/evaluation/cell.py", '"ordered": bool(dataset.ordered),', "", f"{RUNNER_TESTS} -k key"),
    Mutant("advcli/evaluation/cell.py", '"sizes": plain(dataset.sizes),', "", f"{RUNNER_TESTS} -k key"),
    Mutant(
        "advcli/evaluation/cell.py",
        "[[_digest(train), _digest(test)] for train, test in dataset.splits]",
        "len(dataset.splits)",
        f"{RUNNER_TESTS} -k key",
    ),
    Mutant("advcli/evaluation/cell.py", '"numbers": NUMBERS_VERSION, **', "**", f"{RUNNER_TESTS} -k numbers"),
    Mutant("advcli/evaluation/cell.py", "if key not in left_out", "", f"{RUNNER_TESTS} -k key"),
    Mutant(
        "advcli/evaluation/cell.py",
        '"plugins": plugins.fingerprint(),',
        "",
        "tests/cli/test_cli_plugins.py -k new_cells",
    ),
    Mutant("advcli/evaluation/inputs.py", 'return text if digest is None else {"file": digest}', "return text", OF_INPUTS),
    Mutant("advcli/evaluation/inputs.py", "or _is_file(str(value))", "", OF_INPUTS),
    Mutant("advcli/evaluation/additions.py", 'file["sha256"]) != file["sha256"]:', 'file["sha256"]) is None:', f"{OF_INPUTS} -k rivals"),
    Mutant(
        "advcli/evaluation/additions.py", 'about["dataset_sha256"]) != about["dataset_sha256"]:', "0) is None:", f"{OF_INPUTS} -k rivals"
    ),
    Mutant("advcli/evaluation/runner.py", "if folder.stands_on.get(content, sha256) != sha256:", "if False:", f"{OF_INPUTS} -k rivals"),
    Mutant(
        "advcli/results/folder.py", "if not self._held and self.cells_path.is_dir():", "if False:", "tests/results/test_results_lock.py"
    ),
    Mutant("advcli/reports/write.py", "merge=out is None", "merge=True", "tests/results/test_results_lock.py"),
    Mutant(
        "advcli/reports/regression/check.py",
        'if change.status == "unchanged" and new.stale else',
        "if False else",
        "tests/reports/test_reports_check.py",
    ),
    # splits, standardisation, metrics, labels
    Mutant(
        "advcli/evaluation/splits.py",
        "splits.append((order[:n_train], order[n_train : n_train + n_test]))",
        "splits.append((order[:n_train], order[n_train - 1 : n_train + n_test - 1]))",
        "tests/evaluation/test_evaluation_splits.py",
    ),
    Mutant("advcli/evaluation/splits.py", 'derive_seed(seed, "folds", dataset, stage)', 'derive_seed(seed, "folds", dataset, 1)', CELLS),
    Mutant("advcli/evaluation/standardise.py", "deviation = X.std(axis=0, ddof=1) if", "deviation = X.std(axis=0) if", CELLS),
    Mutant(
        "advcli/evaluation/standardise.py",
        "keep = constant & (low >= 0.0) & (low < 1.0)",
        "keep = constant & (low >= 0.0) & (low <= 1.0)",
        "tests/evaluation/test_evaluation_splits.py",
    ),
    Mutant("advcli/metrics.py", '["cost_matrix"])[y_predicted, y_true]', '["cost_matrix"])[y_true, y_predicted]', f"{METRICS} -k cost"),
    Mutant("advcli/metrics.py", '(float(facts["alpha"]) * abstained + wrong)', "(abstained + wrong)", METRICS),
    Mutant("advcli/metrics.py", "np.add.at(counts, (y_predicted, y_true), 1.0)", "np.add.at(counts, (y_true, y_predicted), 1.0)", METRICS),
    Mutant(
        "advcli/evaluation/training_labels.py",
        'seeds.of("noisy labels")',
        'seeds.of("noise")',
        f"{CELLS} -k noise",
    ),
    Mutant("advcli/evaluation/training_labels.py", "fresh = sample[~np.isin(sample, rough_rows)]", "fresh = sample", LABELS),
    Mutant("advcli/data/labels/noise.py", "(draws >= reached).sum(axis=0)", "(draws > 1.0 - reached).sum(axis=0)", f"{CELLS} -k noise"),
)

SELECTION = "tests/evaluation/test_evaluation_selection.py"
SEARCH = (
    Mutant(
        "advcli/evaluation/selection.py",
        "view = learner.look(held.rows) if view is None else view",
        "view = learner.look(fit[: len(held.X)].rows)",
        CELLS,
    ),
    Mutant(
        "advcli/evaluation/selection.py", "standardiser = Standardiser().fit(fit.X)", "standardiser = Standardiser().fit(part.X)", CELLS
    ),
    Mutant(
        "advcli/evaluation/selection.py", 'if protocol.standardise == "train":', 'if protocol.standardise == "never":', f"{CELLS} -k lambda"
    ),
    Mutant(
        "advcli/evaluation/part.py",
        "Rows(self.X, self.weight, self.costs, self.groups, self.relations)",
        "Rows(self.X, None, self.costs, self.groups, self.relations)",
        f"{CELLS} -k weights",
    ),
    Mutant(
        "advcli/evaluation/selection.py",
        'sorted(numbers, reverse=hyper(str(self.axes.strength) if name == STRENGTH else name).strong == "large")',
        "sorted(numbers)",
        f"{CELLS} {SELECTION}",
    ),
    Mutant(
        "advcli/evaluation/selection.py",
        "return [place if name in self.lists else self.values[name].index(place) for name, place in places]",
        "return [place if name in self.lists else -self.values[name].index(place) for name, place in places]",
        f"{CELLS} {SELECTION}",
    ),
    Mutant(
        "advcli/evaluation/selection.py",
        "return [place if name in self.lists else self.values[name].index(place) for name, place in places]",
        "return [place if name in self.lists else -self.values[name].index(place) if name != STRENGTH else 0 for name, place in places]",
        f"{CELLS} {SELECTION}",
    ),
    Mutant("advcli/evaluation/selection.py", "return -pooled if about.higher_is_better else pooled", "return pooled", SELECTION),
    Mutant("advcli/evaluation/selection.py", "float(round(total)) if about.is_count", "total if about.is_count", SELECTION),
    Mutant(
        "advcli/evaluation/selection.py",
        'derive_seed(self.seed, "search", self.dataset, number, fold)',
        'derive_seed(self.seed, "search", self.dataset, number, 1)',
        f"{CELLS} -k seed",
    ),
    Mutant("advcli/evaluation/selection.py", "learner.fit_bound(bound, previous)", "learner.fit_bound(bound, None)", f"{CELLS} -k seed"),
    Mutant("advcli/evaluation/selection.py", "factor * best[name] for factor", "factor for factor", f"{CELLS} -k two"),
    Mutant("advcli/evaluation/selection.py", 'last = selection.rows[-1]["stage"]', "last = 1", f"{CELLS} -k model"),
    Mutant("advcli/evaluation/selection.py", "(name == STRENGTH or name in axes.lists or not hyper(name).choice)", "True", SELECTION),
)

INPUTS, FACTORY = "tests/cli/test_cli_inputs.py", "tests/learners/test_learners_method.py"
SETTINGS = (
    # hyper-parameters
    Mutant(
        "advcli/core/hyper.py", '1/(n C) with n the rows of the fit", strong="large")', '1/(n C) with n the rows of the fit")', SELECTION
    ),
    Mutant("advcli/core/hyper.py", 'in standard errors", strong="large")', 'in standard errors")', SELECTION),
    Mutant("advcli/core/hyper.py", 'scale of the polynomial one"', 'scale of the polynomial one", strong="large"', SELECTION),
    Mutant("advcli/core/hyper.py", 'how a hierarchy weighs its nodes", choice=True', 'how a hierarchy weighs its nodes"', SELECTION),
    Mutant("advcli/core/hyper.py", 'if hyper.strong not in ("small", "large"):', "if False:", SELECTION),
    Mutant("advcli/core/hyper.py", "!= hyper or hyper.name == STRENGTH:", "!= hyper:", SELECTION),
    Mutant(
        "advcli/core/hyper.py",
        "_TABLE.setdefault(hyper.name, hyper) != hyper or",
        "_TABLE.setdefault(hyper.name, hyper) is None or",
        SELECTION,
    ),
    # the protocol
    Mutant("advcli/config/protocol.py", "if key not in known:", "if False:", SELECTION),
    Mutant("advcli/config/protocol.py", 'refuse(f"protocol.{key}", value, known[key].metadata)', "pass", SELECTION),
    Mutant("advcli/config/protocol.py", "metrics.check_metric(name)", "metrics.meaning(name)", SELECTION),
    Mutant("advcli/config/protocol.py", "if axis not in axes():", "if False:", SELECTION),
    Mutant("advcli/config/protocol.py", "if not numbers:", "if False:", SELECTION),
    Mutant("advcli/config/protocol.py", 'if not all(POSITIVE["valid"](number) for number in numbers):', "if False:", SELECTION),
    Mutant(
        "advcli/config/protocol.py",
        '= ("test", "alpha", "correction")',
        '= ("test", "alpha", "correction", "standardise")',
        f"{RUNNER_TESTS} -k key",
    ),
    # what a learner is told of the data
    Mutant(
        "advcli/learners/base.py",
        "for name in cls.needs(loss) & facts.keys() if loss.get(name) is None}",
        "for name in ()}",
        FACTORY,
    ),
    Mutant(
        "advcli/learners/base.py",
        "& facts.keys() if loss.get(name) is None}",
        "& facts.keys()}",
        FACTORY,
    ),
    Mutant("advcli/losses/base.py", "if complete.get(name) is None:", "if True:", FACTORY),
    Mutant("advcli/losses/base.py", "complete[name] = facts[name]", "pass", FACTORY),
    Mutant("advcli/learners/method.py", "for name in sorted(set(self.hyper) - valid):", "for name in ():", FACTORY),
    Mutant("advcli/learners/linear.py", "if weights is not None and not weights.all():", "if False:", f"{CELLS} -k clean"),
    Mutant(
        "advcli/data/labels/codes.py",
        "codes.min() < least or codes.max() >= n_classes",
        "codes.min() < least",
        FACTORY,
    ),
    Mutant(
        "advcli/data/labels/codes.py",
        "at_least(2, MOST_CLASSES)",
        "at_least(2)",
        "tests/learners/test_learners_estimators_contract.py -k nobody",
    ),
    Mutant(
        "advcli/learners/method.py",
        '"tol": tol}',
        '"tol": 1e-3}',
        FACTORY,
    ),
)

FOLDERS, BOUNDS = "tests/verify/test_verify_folders.py", "tests/verify/test_verify_bounds.py"
RECORDING = "tests/verify/test_verify_recording.py"
FOREIGN = "tests/evaluation/test_evaluation_foreign_weights.py"
PROVED, ALTERED = f"{FOLDERS} -k is_proved", f"{FOLDERS} -k refuted"
VERIFY = (
    Mutant("advcli/verify/surrogates.py", "(ball(np.ones(P.shape)) - P", "(ball(np.zeros(P.shape)) - P", f"{BOUNDS} -k top_k"),
    # bounds without their rounding
    Mutant(
        "advcli/verify/bounds.py", "np.nextafter(radius * (1.0 + 4.0 * (terms + 2) * UNIT) + _TINY, np.inf)", "radius", f"{BOUNDS} {GAPS}"
    ),
    Mutant("advcli/verify/bounds.py", "radius * (1.0 + 4.0 * (terms + 2) * UNIT) + _TINY", "radius + _TINY", BOUNDS),
    Mutant("advcli/verify/bounds.py", "(terms + 2) * UNIT) + _TINY", "(terms + 2) * UNIT)", BOUNDS),
    Mutant("advcli/verify/bounds.py", "outward(self.rad + other.rad + UNIT * np.abs(mid))", "outward(self.rad + other.rad)", BOUNDS),
    Mutant(
        "advcli/verify/bounds.py",
        "(np.abs(other.mid) + other.rad) + UNIT * np.abs(mid)))",
        "(np.abs(other.mid) + other.rad)))",
        BOUNDS,
    ),
    Mutant("advcli/verify/bounds.py", "outward(self.rad / other + UNIT * np.abs(mid))", "outward(self.rad / other)", BOUNDS),
    Mutant(
        "advcli/verify/bounds.py",
        "spread.sum(axis=axis) + _gamma(count) * np.abs(self.mid).sum(axis=axis)",
        "spread.sum(axis=axis)",
        BOUNDS,
    ),
    Mutant("advcli/verify/bounds.py", "outward(_gamma(terms) * np.abs(b) + spread[columns])", "outward(spread[columns])", BOUNDS),
    Mutant("advcli/verify/bounds.py", "if inexact:", "if False:", BOUNDS),
    Mutant("advcli/verify/bounds.py", "x.rad**2 + _EXP * (1.0 + 3.0 * x.rad)", "x.rad**2", BOUNDS),
    Mutant("advcli/verify/bounds.py", "x.rad * mid / (x.mid - x.rad) + UNIT * mid", "UNIT * mid", BOUNDS),
    # surrogates from above, dual points from below
    Mutant(
        "advcli/verify/surrogates.py", "dot(P, self.matrix) + np.abs(self.matrix).max() * astray[:, None]", "dot(P, self.matrix)", BOUNDS
    ),
    Mutant("advcli/verify/surrogates.py", "return np.maximum(stored, 0.0)", "return stored", BOUNDS),
    Mutant("advcli/verify/surrogates.py", "(offset - Ball(outward(self.steepness * short))) * w", "offset * w", BOUNDS),
    Mutant("advcli/verify/surrogates.py", "Q = np.maximum(R + truth, 0.0)", "Q = R + truth", f"{BOUNDS} {GAPS}"),
    Mutant("advcli/verify/surrogates.py", "short + point.rad.sum(axis=1)", "point.rad.sum(axis=1)", f"{BOUNDS} {GAPS}"),
    Mutant(
        "advcli/verify/surrogates.py", "[:, None], 0.0, 1.0) * (1.0 - truth)", "[:, None], -9.0, 9.0) * (1.0 - truth)", f"{BOUNDS} {GAPS}"
    ),
    Mutant("advcli/verify/surrogates.py", "else weights[y]", "else weights[0 * y]", f"{FOLDERS} -k 'is_proved and by_class'"),
    # one fit
    Mutant("advcli/verify/gap.py", "extra = outward(2.0 * length", "extra = 0.0 * outward(2.0 * length", GAPS),
    Mutant("advcli/verify/gap.py", "moved = outward(moved + 2.0 * surplus)", "pass", GAPS),
    Mutant("advcli/verify/gap.py", "offset = offset - steepness * outward(2.0 * surplus * share.size)", "pass", GAPS),
    Mutant(
        "advcli/verify/gap.py",
        "dual - steepness * moved * share.size",
        "dual",
        GAPS,
        equivalent="in a box the bound of c is that of the moved point already; charged twice it is lower still",
    ),
    Mutant("advcli/verify/gap.py", "+ max(features.longest, 1.0) * moved * share.size)", ")", GAPS),
    Mutant("advcli/verify/gap.py", "t = 1.0 if (high <= widths).all() else t", "t = 1.0", GAPS),
    Mutant("advcli/verify/gap.py", "(parameters.sum(axis=1) / loss.k)[:, None]", "0.0", GAPS),
    Mutant("advcli/verify/gap.py", "every[:, :, None] - every[:, None, :]", "every[:, :, None] - every[:, None, :] * 0.0", GAPS),
    Mutant("advcli/verify/gap.py", "start * outward(1.0 - t) if t < 1.0 else offset", "start if t < 1.0 else offset", GAPS),
    Mutant("advcli/verify/gap.py", "square_norm(V) * (0.5 * lam)", "square_norm(V) * lam", GAPS),
    Mutant("advcli/verify/gap.py", "inverse(ball(2.0 * lam))", "inverse(ball(4.0 * lam))", GAPS),
    Mutant(
        "advcli/verify/gap.py",
        "inverse(ball(weights).sum() if s is not None",
        "inverse(ball(float(n)) if s is not None",
        GAPS,
    ),
    Mutant("advcli/verify/gap.py", "R = ball(point.R) * weights[:, None]", "R = ball(point.R)", GAPS),
    # a folder
    Mutant("advcli/verify/folder.py", "if s is None else s[first]", "", f"{FOLDERS} -k 'is_proved and counted'"),
    Mutant(
        "advcli/verify/splits.py",
        'seed_of(seed, "split", dataset.name, number)',
        'seed_of(seed, "split", dataset.name, 0)',
        f"{BOUNDS} -k splits",
    ),
    Mutant("advcli/verify/folder.py", "deviation = X.std(axis=0, ddof=1) if", "deviation = X.std(axis=0) if", f"{BOUNDS} -k splits"),
    Mutant(
        "advcli/verify/folder.py",
        'seed_of(config["seed"], "noisy labels", dataset.name, split)',
        'seed_of(config["seed"], "noisy labels", dataset.name, 1)',
        f"{FOLDERS} -k 'is_proved and noise'",
    ),
    Mutant(
        "advcli/verify/folder.py",
        'if any(entry["proof"] != expected for entry in rows):',
        "if False:",
        ALTERED,
    ),
    Mutant("advcli/verify/folder.py", 'if dataset.sha256 != stored["about"]["dataset_sha256"]:', "if False:", ALTERED),
    Mutant("advcli/verify/folder.py", 'if (mine.get(column) or "") != (row.get(column) or ""):', "if False:", ALTERED),
    Mutant("advcli/verify/folder.py", "if len(texts) != len(rows):", "if False:", ALTERED),
    Mutant("advcli/verify/folder.py", "if not abs(claim - proved.mid) <= slack + proved.rad:", "if False:", ALTERED),
    Mutant("advcli/verify/folder.py", "if not abs((objective - dual) / scale - gap) <= SLACK + FLOOR / scale:", "if False:", ALTERED),
    Mutant("advcli/verify/folder.py", "if any(converged != str(value <= tol) for value, converged in gaps) or", "if False and", ALTERED),
    Mutant("advcli/verify/folder.py", "if row[column] != str(value):", "if False:", ALTERED),
    Mutant("advcli/verify/folder.py", "if any(not np.isfinite(array).all() for array in arrays.values()):", "if False:", ALTERED),
    Mutant("advcli/verify/folder.py", "    if game:\n", "    if False:\n", ALTERED),
    Mutant(
        "advcli/verify/folder.py",
        'if any(row[group] != str(config[group]["name"]) for row in rows):',
        "if False:",
        ALTERED,
    ),
)
PROOFS = (
    Mutant(
        "advcli/results/proofs.py",
        'hashlib.sha256(canonical_json({"cell": cell, "split": split}).encode())',
        "hashlib.sha256()",
        f"{RECORDING} -k hash",
    ),
    Mutant("advcli/results/proofs.py", '{"cell": cell, "split": split}', '{"cell": cell}', f"{RECORDING} -k hash"),
    Mutant("advcli/results/proofs.py", '{"cell": cell, "split": split}', '{"split": split}', f"{RECORDING} -k hash"),
    Mutant(
        "advcli/results/proofs.py",
        'PARTS = ("theta", "r", "predictor", ',
        'PARTS = ("theta", "r", ',
        f"{RECORDING} -k hash",
    ),
    Mutant("advcli/results/proofs.py", "not needed or self._path.is_file()", "True", f"{RECORDING} -k workers"),
    Mutant("advcli/results/proofs.py", 'bool(stored["about"].get("proofs")) and', "", f"{RECORDING} -k workers"),
    Mutant("advcli/learners/base.py", "np.where(rows[:, None] >= 0, dual[rows], 0.0)", "dual[rows]", f"{RECORDING} -k own_label"),
    Mutant(
        "advcli/features/merging.py",
        "spread[held[first]] = coefficients[merged]",
        "spread[held] = coefficients[rows[held]]",
        f"{FOLDERS} -k 'is_proved and kernels'",
    ),
    Mutant(
        "advcli/learners/surrogate.py",
        "F = self.potentials(X)\n            if base",
        "F = 0.0 * self.potentials(X)\n            if base",
        f"{FOLDERS} -k 'is_proved and matrix'",
    ),
    Mutant(
        "advcli/learners/surrogate.py", "/ (cost if inner is None else cost / inner)[:, None]", "", f"{FOLDERS} -k 'is_proved and matrix'"
    ),
    Mutant(
        "advcli/evaluation/runner.py", "recorder.keep(number, learner,", "recorder.keep(1, learner,", f"{FOLDERS} -k 'is_proved and raw'"
    ),
    Mutant(
        "advcli/evaluation/runner.py",
        "learner, fitted.examples(train.X), fitted.codes,",
        "learner, train.X, fitted.codes,",
        f"{FOLDERS} -k 'is_proved and matrix'",
    ),
    Mutant(
        "advcli/evaluation/runner.py",
        "fitted.examples(train.X), fitted.codes,",
        "fitted.examples(train.X), train.y,",
        f"{FOLDERS} -k 'is_proved and matrix'",
    ),
    Mutant("advcli/evaluation/runner.py", "fitted.codes, fitted.weight)", "fitted.codes, None)", f"{FOLDERS} -k 'is_proved and matrix'"),
)
FOREIGN_WEIGHTS = (
    Mutant("advcli/evaluation/foreign_weights.py", "np.vstack([-0.5 * weights, 0.5 * weights])", "np.vstack([-weights, weights])", FOREIGN),
    Mutant(
        "advcli/evaluation/foreign_weights.py",
        "np.vstack([-0.5 * weights, 0.5 * weights])",
        "np.vstack([0.5 * weights, -0.5 * weights])",
        FOREIGN,
    ),
    Mutant("advcli/evaluation/foreign_weights.py", "set_params(fit_intercept=intercept)", "set_params(fit_intercept=True)", FOREIGN),
    Mutant("advcli/evaluation/foreign_weights.py", "theta = theta[:, _order(self._labels, classes)]", "pass", FOREIGN),
    Mutant("advcli/evaluation/foreign_weights.py", "classes = np.argsort(order).tolist()", "classes = order", FOREIGN),
    Mutant(
        "advcli/evaluation/foreign_weights.py",
        "fitted.certificate_.dual, _highest(problem, R, at_weights)",
        "fitted.certificate_.dual",
        FOREIGN,
    ),
    Mutant("advcli/evaluation/foreign_weights.py", "best = min(primal, certificate.primal)", "best = certificate.primal", FOREIGN),
    Mutant("advcli/evaluation/foreign_weights.py", "best = min(primal, certificate.primal)", "best = primal", FOREIGN),
    Mutant("advcli/evaluation/foreign_weights.py", 'raw = cell.protocol.standardise == "none"', "raw = False", FOREIGN),
    Mutant("advcli/evaluation/foreign_weights.py", "classes, dataset.example_weight)", "classes, None)", FOREIGN),
    Mutant("advcli/evaluation/foreign_weights.py", "if not np.isfinite(theta).all():", "if False:", FOREIGN),
    Mutant(
        "advcli/evaluation/foreign_weights.py",
        "fitted.loss_.core, codes, fitted.solution_.lam, weights, cost)",
        "fitted.loss_.core, codes, fitted.solution_.lam, weights)",
        FOREIGN,
    ),
)

CHECKED, CHECK_COMMAND = "tests/reports/test_reports_check.py", "tests/cli/test_cli_check.py"
CHECK = (
    Mutant("advcli/reports/regression/gates.py", "NOISE = 1e-9", "NOISE = 0.05", CHECKED),
    Mutant("advcli/reports/regression/check.py", "if new.n != len(old.values):", "if False:", CHECKED),
    Mutant("advcli/reports/regression/check.py", "if new.failed:\n", "if False:\n", CHECKED),
    Mutant(
        "advcli/reports/regression/check.py", "if old.splits == new.splits and len(old.values):", "if len(old.values) == new.n:", CHECKED
    ),
    Mutant("advcli/reports/regression/check.py", "if p_value < alpha:", "if p_value < 1.0:", CHECKED),
    Mutant("advcli/reports/regression/check.py", "(difference > 0) == meaning(", "(difference < 0) == meaning(", CHECKED),
    Mutant("advcli/reports/regression/baseline.py", '"noise": cell.get("noise"),', "", CHECKED),
    Mutant("advcli/reports/regression/baseline.py", '"seed": cell.get("seed"),', "", CHECKED),
    Mutant("advcli/reports/regression/baseline.py", '"sha256": about["dataset_sha256"],', "", CHECKED),
    Mutant("advcli/reports/regression/check.py", "elif new is None or not new.n:", "elif new is None:", CHECKED),
    Mutant(
        "advcli/reports/regression/check.py", "np.round(values * np.array(new.sizes), 6)", "np.round(values * new.sizes[0], 6)", CHECKED
    ),
    Mutant("advcli/reports/regression/check.py", "int(np.argmax(np.abs(first - second)))", "0", CHECKED),
    Mutant("advcli/reports/regression/check.py", "and now > SECONDS_FLOOR", "", CHECKED),
    Mutant("advcli/reports/regression/check.py", "if new.passes > COST_FACTOR * old.passes:", "if False:", CHECKED),
    Mutant(
        "advcli/reports/regression/baseline.py",
        "    runs = folder.of_cells()",
        "    folder.merge()\n    runs = folder.runs()",
        CHECKED,
    ),
    Mutant(
        "advcli/reports/regression/baseline.py",
        "    runs = folder.of_cells()",
        "    runs = folder.runs()",
        CHECKED,
    ),
    Mutant(
        "advcli/reports/regression/junit.py", "if change.failed:\n            ET.", 'if change.status == "moved":\n            ET.', CHECKED
    ),
    Mutant("advcli/reports/regression/junit.py", "if finding:\n        case", "if False:\n        case", CHECKED),
    Mutant("advcli/results/folder.py", 'return difference(path.name, self._merged("runs"), csv.reader(file))', 'return ""', CHECKED),
    Mutant("advcli/results/cell_tables.py", "if self._numbers[path] < newest[text]}", "if False}", f"{RUNNER_TESTS} -k numbers"),
    Mutant("advcli/results/cell_tables.py", "canonical_json(lasting(cell))", "canonical_json(cell)", f"{RUNNER_TESTS} -k numbers"),
    Mutant("advcli/reports/regression/baseline.py", "tolerances.get(entry.name, _rounded_up(usual))", "_rounded_up(usual)", CHECKED),
    Mutant("advcli/cli/actions/check.py", "print(finding)\n            self.code = 1", "print(finding)", CHECK_COMMAND),
    Mutant(
        "advcli/cli/actions/check.py", "if not settings.update and any(change.failed for change in changes):", "if False:", CHECK_COMMAND
    ),
    Mutant(
        "advcli/cli/actions/check.py",
        'self._write_junit(junit.junit_error("the check was ended before its result"), final=False)',
        "pass",
        CHECK_COMMAND,
    ),
    Mutant("advcli/cli/actions/check.py", 'if head.strip() and b"<testsuite" not in head:', "if False:", CHECK_COMMAND),
    Mutant("advcli/cli/actions/check.py", "if settings.update and finding:", "if False:", CHECK_COMMAND),
    Mutant(
        "advcli/cli/actions/check.py",
        'left out of the baseline, as not every split has a result; {remedy}")\n            self.code = 1',
        'left out of the baseline, as not every split has a result; {remedy}")',
        CHECK_COMMAND,
    ),
    Mutant(
        "advcli/cli/actions/check.py",
        'self._write_junit(junit.junit_error(" ".join(str(error).split()) or type(error).__name__))',
        "pass",
        CHECK_COMMAND,
    ),
)

RUNS = "tests/cli/test_cli_runs.py"
CLI = (
    Mutant("advcli/cli/main.py", "return error.exit_code", "return 1", f"{INPUTS} -k 'bad_input and 0 or cannot_be_made'"),
    Mutant(
        "advcli/cli/main.py",
        'say("interrupted")\n        return _code(error)',
        'say("interrupted")\n        return 0',
        f"{RUNS} -k interrupt",
    ),
    Mutant(
        "advcli/cli/main.py",
        "say(task.interrupted())\n        return _code(error)",
        "say(task.interrupted())\n        return 1",
        f"{RUNS} -k interrupt",
    ),
    Mutant("advcli/cli/main.py", "return task.finish() if code is None else code", "return code or 0", f"{RUNS} -k failing"),
    Mutant("advcli/cli/main.py", "task.abandoned(error)\n        raise", "raise", CHECK_COMMAND),
    Mutant("advcli/cli/task.py", "if self.error is not None:", "if False:", f"{INPUTS} -k verb_with"),
    Mutant("advcli/cli/actions/verify.py", 'int(counts["refuted"] > 0 or', "int(", f"{FOLDERS} -k command"),
    Mutant("advcli/cli/actions/verify.py", 'counts["refuted"] > 0 or', 'counts["cannot"] > 0 or', f"{FOLDERS} -k command"),
    Mutant("advcli/cli/actions/verify.py", 'or not counts["proved"])', ")", f"{OF_INPUTS} -k proofs"),
    Mutant("advcli/verify/folder.py", "if key in files and file_sha256(path) != files", "if not files", f"{OF_INPUTS} -k proofs"),
    Mutant("advcli/cli/actions/run.py", "return 1 if failed or self.died or late else 0", "return 0", f"{RUNS} -k fail"),
    Mutant("advcli/cli/actions/run.py", "return 1 if failed or self.died", "return 1 if not failed or self.died", RUNS),
    Mutant("advcli/core/errors.py", "exit_code = 2", "exit_code = 1", f"{INPUTS} -k 'bad_input or cannot_be_made'"),
)

RECORDS_TESTS, TABLE_TESTS = "tests/results/test_results_folder.py", "tests/reports/test_reports_table.py"
IDENTITIES, DAMAGES = "tests/results/test_results_identity.py -k 'not 200'", "tests/results/test_results_damage.py"
OUTPUTS = "tests/core/test_core_files.py"
LIMITED = "tests/core/test_core_processes.py"
ENDINGS = (
    Mutant("advcli/core/processes.py", "if os.getppid() != parent:  # the", "if False:  # the", f"{LIMITED} -k parent"),
    Mutant("advcli/core/processes.py", "    bound = by_signal and _signalled_by_parent()", "    bound = by_signal", f"{LIMITED} -k parent"),
    Mutant("advcli/core/processes.py", "    if not bound:\n", "    if False:\n", f"{LIMITED} -k parent"),
    Mutant(
        "advcli/cli/launching.py",
        "                _workers_end_with_this_process(self.launcher)\n",
        "",
        "tests/system/test_system_sweeps.py -k while_workers_start",
    ),
)
RECORDS = (
    Mutant(
        "advcli/core/files.py",
        "        place(temporary, target)\n",
        "        target.write_bytes(temporary.read_bytes())\n        temporary.unlink()\n",
        RECORDS_TESTS,
    ),
    Mutant(
        "advcli/results/tables.py",
        "return repr(value)\n    return str(value)",
        'return f"{value:.12g}"\n    return str(value)',
        RECORDS_TESTS,
    ),
    Mutant(
        "advcli/results/cell_tables.py",
        "key=self._order.__getitem__)",
        "key=self._order.__getitem__, reverse=True)",
        RECORDS_TESTS,
    ),
    Mutant(
        "advcli/results/tables.py",
        "return int(value) if whole and",
        "return int(value) if False and",
        RECORDS_TESTS,
    ),
    Mutant("advcli/results/tables.py", 'sort_keys=True, separators=(",", ":")', 'separators=(",", ":")', RECORDS_TESTS),
    Mutant("advcli/results/cell_tables.py", "elif request in self._finished:", "elif False:", RECORDS_TESTS),
    Mutant(
        "advcli/results/cell_file.py", 'return content if content["schema"] == SCHEMA_VERSION else None', "return content", RECORDS_TESTS
    ),
    Mutant(
        "advcli/results/folder.py",
        "if not same and self._occupied():",
        "if False:",
        RECORDS_TESTS,
    ),
    Mutant("advcli/results/folder.py", "if owner.identity is None and self._occupied():", "if False:", IDENTITIES),
    Mutant("advcli/results/folder.py", "if owner.stored is None or not owner.is_of(self._identity):", "if False:", IDENTITIES),
    Mutant(
        "advcli/results/folder.py", "< len(cell_files(self.cells_path)) or self._in_use()", "< len(cell_files(self.cells_path))", IDENTITIES
    ),
    Mutant("advcli/results/cell_tables.py", "        self._owner.add(path, content)\n", "", IDENTITIES),
    Mutant("advcli/results/identity.py", "elif not self.is_of(identity):", "elif False:", IDENTITIES),
    Mutant("advcli/core/files.py", "os.O_WRONLY | os.O_CREAT | os.O_EXCL", "os.O_WRONLY | os.O_CREAT", IDENTITIES),
    Mutant("advcli/results/cell_file.py", "        _check_names(path, content)\n", "        pass\n", DAMAGES),
    Mutant(
        "advcli/results/cell_file.py", "if hashlib.sha256(raw[: seal.start()]", "if False and hashlib.sha256(raw[: seal.start()]", DAMAGES
    ),
    Mutant("advcli/evaluation/runner.py", '*map(advice, cell_fits.counted["stopped"]), ', "", f"{RUNNER_TESTS} -k advice"),
    Mutant("advcli/evaluation/runner.py", 'if row["dual_objective"] == -math.inf:', "if False:", f"{RUNNER_TESTS} -k advice"),
    Mutant("advcli/results/cell_file.py", "and DAMAGED not in file.name", "", DAMAGES),
    Mutant(
        "advcli/results/folder.py",
        "if not tables.paths and not self._had_cells():\n                return 0",
        "if not tables.paths:\n                return 0",
        DAMAGES,
    ),
    Mutant("advcli/evaluation/runner.py", 'folder.set_aside(self.key) if self.stored is None else ""', '""', DAMAGES),
    Mutant("advcli/core/files.py", "if stream and not streams:", "if False:", OUTPUTS),
    Mutant("advcli/core/files.py", "path = path.parent / os.readlink(path)", "break", OUTPUTS),
    Mutant("advcli/core/files.py", 'os.fdopen(os.dup(number), "wb")', 'stream.open("wb")', OUTPUTS),
    Mutant(
        "advcli/results/folder.py",
        'write_text(self.cells_path / f"{request}{FAILED}.json", text)',
        'write_text(self.cells_path / f"{key}.json", text)',
        RECORDS_TESTS,
    ),
    Mutant(
        "advcli/results/tables.py",
        'numbers = np.where(empty, "0", text).astype(np.int64)',
        'numbers = np.where(empty, "1", text).astype(np.int64)',
        RECORDS_TESTS,
        equivalent="what stands below the mask of a missing number is never read",
    ),
)

STATISTICS = "tests/statistics/test_statistics_tests.py"
ACROSS, CURVES = "tests/reports/test_reports_across.py", "tests/reports/test_reports_curves.py"
REPORTS = (
    Mutant("advcli/metrics.py", "return value if meaning(name).complement is None else 1.0 - value", "return value", TABLE_TESTS),
    Mutant("advcli/metrics.py", "mean = shown_value(metric, mean)\n    digits", "mean = mean\n    digits", TABLE_TESTS),
    Mutant(
        "advcli/reports/comparison.py",
        'row is not None and row["n_splits"] and not row["failed"]',
        'row is not None and row["n_splits"]',
        TABLE_TESTS,
    ),
    Mutant(
        "advcli/reports/comparison.py",
        'sum(bool(row is not None and row["bold"])',
        'sum(bool(row is not None and row["best"])',
        TABLE_TESTS,
    ),
    Mutant(
        "advcli/reports/summary.py",
        "for counts in (drawn, sizes) for",
        "for counts in (drawn,) for",
        TABLE_TESTS,
    ),
    Mutant(
        "advcli/reports/summary.py",
        "if not splits.n_failed and len(splits.split)",
        "if len(splits.split)",
        TABLE_TESTS,
    ),
    Mutant("advcli/reports/summary.py", "values.std(ddof=1)", "values.std()", TABLE_TESTS),
    Mutant("advcli/reports/summary.py", "counts[b, a] = counts[a, b][::-1]", "counts[b, a] = counts[a, b]", ACROSS),
    Mutant("advcli/reports/curves.py", "numbers.std(ddof=1) / math.sqrt(len(numbers))", "numbers.std(ddof=1) / len(numbers)", CURVES),
    Mutant(
        "advcli/reports/formats/latex.py",
        "*(line(row) for row in table.footer)]",
        "*(line(row) for row in table.footer[1:])]",
        f"{TABLE_TESTS} -k latex",
    ),
    Mutant(
        "advcli/reports/summary.py",
        "order = np.lexsort((split, method))",
        "order = np.lexsort((np.zeros(len(split)), method))",
        TABLE_TESTS,
    ),
    Mutant("advcli/statistics/tests.py", "len(np.asarray(a))) + n_test / n_train)", "len(np.asarray(a))) + n_train / n_test)", STATISTICS),
    Mutant("advcli/statistics/tests.py", "difference = difference[difference != 0.0]\n    if", "if", STATISTICS),
    Mutant(
        "advcli/statistics/tests.py",
        "tail = float(chance[: round(2 * min(positive, negative)) + 1].sum())",
        "tail = float(chance[: round(2 * min(positive, negative))].sum())",
        STATISTICS,
    ),
    Mutant("advcli/statistics/marks.py", "p < significance.alpha and result.sign == better", "False", STATISTICS),
    Mutant(
        "advcli/statistics/tests.py",
        "np.maximum.accumulate(rising * np.arange(len(rising), 0, -1))",
        "rising * np.arange(len(rising), 0, -1)",
        STATISTICS,
    ),
    Mutant(
        "advcli/statistics/across.py",
        "n_methods * (n_methods + 1) / (6 * n_datasets)",
        "n_methods * (n_methods - 1) / (6 * n_datasets)",
        f"{STATISTICS} {ACROSS}",
    ),
)

FILES, FIT = "tests/models/test_models_files.py", "tests/cli/test_cli_fit.py"
BROKEN = "tests/models/test_models_mutations.py"
MODELS = (
    Mutant(
        "advcli/models/fitting.py",
        "recipe.search(everything, ALL)",
        "recipe.search(type(everything)(everything.X, everything.y), ALL)",
        f"{CELLS} -k model",
    ),
    Mutant(
        "advcli/models/fitting.py",
        "recipe.fit(everything, selection.hyper, ALL)",
        "recipe.fit(type(everything)(everything.X, everything.y), selection.hyper, ALL)",
        f"{CELLS} -k model",
    ),
    Mutant("advcli/models/fitting.py", "standardiser=fitted.standardiser,", "standardiser=None,", f"{CELLS} -k model"),
    Mutant("advcli/models/files.py", ".strip() != _checksum(members):", ".strip() != _checksum(members) and False:", f"{FILES} -k archive"),
    Mutant(
        "advcli/models/files.py",
        'digest.update(f"{name} {len(members[name])}\\n".encode())\n            digest.update(members[name])',
        'digest.update(f"{name} {len(members[name])}\\n".encode())',
        f"{FILES} -k archive",
    ),
    Mutant("advcli/models/files.py", "if not stored or entry.header_offset + long > end:", "if not stored:", f"{BROKEN} -k share"),
    Mutant("advcli/models/restored.py", "    attributes.check_taken()\n", "", f"{BROKEN} -k listed"),
    Mutant("advcli/models/restored.py", "if not standardiser.scale_.all():", "if False:", f"{BROKEN} -k named"),
    Mutant("advcli/learners/surrogate.py", "if chosen.reads_file(self.loss_options or {}):", "if False:", f"{BROKEN} -k 'opens and costs'"),
    Mutant("advcli/core/stored_arrays.py", 'if kind == "f" and not np.isfinite(values).all():', "if False:", f"{BROKEN} -k named"),
    Mutant("advcli/core/stored_arrays.py", "if shape is not None and (len(lengths)", "if False and (len(lengths)", f"{BROKEN} -k named"),
    Mutant("advcli/core/stored_arrays.py", '"i", 0, columns - 1)', '"i", 0, columns)', f"{BROKEN} -k sparse"),
    Mutant("advcli/core/stored_arrays.py", "(np.diff(pointers) < 0).any() or ", "", f"{BROKEN} -k sparse"),
    Mutant("advcli/models/files.py", "if version != FORMAT_VERSION:", "if False:", f"{FILES} -k refused"),
    Mutant(
        "advcli/models/model.py", "X = X if self.standardiser is None else self.standardiser.transform(X)", "X = X", f"{CELLS} -k model"
    ),
)

HINGES, KERNEL_NEWTON = "tests/solvers/test_solvers_hinges.py", "tests/solvers/test_solvers_kernel_newton.py"
AUTO = "tests/solvers/test_solvers_auto.py"
NEWTON = "tests/solvers/test_solvers_newton.py"
BINARY, THRESHOLD = "tests/compiled/test_compiled_binary.py", "tests/compiled/test_compiled_threshold.py"
PAIRS, GAUSSIAN = "tests/compiled/test_compiled_pairs.py", "tests/compiled/test_compiled_gaussian.py"
SYSTEMS, KERNEL_SPLITTING = "tests/learners/test_learners_kernel_systems.py", "tests/solvers/test_solvers_kernel_splitting.py"
SMOOTH = "tests/learners/test_learners_smooth_thresholds.py"
REDUCTIONS, ORDINAL, ABSTAINING = (
    "tests/learners/test_learners_reductions.py",
    "tests/learners/test_learners_ordinal.py",
    "tests/learners/test_learners_abstention.py",
)
PROGRAMS = "tests/core/test_core_highs.py"
CONTRACT, ACCEPTED = "tests/losses/test_losses_rejecting.py", "tests/statistics/test_statistics_risk_coverage.py"
RIVALS = (
    # when a turn ends
    Mutant(
        "advcli/solvers/coordinate/dense.py",
        "steps.passes_left(passes, progress.gap) > limits.turn",
        "0.0 > limits.turn",
        f"{AUTO} -k early",
    ),
    Mutant(
        "advcli/solvers/coordinate/dense.py",
        "steps.passes_left(passes, progress.gap) > limits.turn",
        "limits.turn > 0.0",
        f"{AUTO} -k early",
    ),
    # hinges that share nothing but the rows
    Mutant("advcli/solvers/newton/hinges.py", "np.where(signed.T > 0.0, -1, 1)", "np.where(signed.T > 0.0, 1, -1)", HINGES),
    Mutant(
        "advcli/solvers/newton/hinges.py",
        "np.broadcast_to(problem.cost_weight, bound.shape)",
        "np.ones(bound.shape)",
        f"{HINGES} -k optimum",
    ),
    Mutant(
        "advcli/solvers/newton/hinges.py", "np.maximum(np.sign(signed) * loss", "np.maximum(-np.sign(signed) * loss", f"{HINGES} -k start"
    ),
    # the rank of a kernel matrix
    Mutant("advcli/features/kernels/pivots.py", "left -= rows[p] ** 2", "left -= 0.5 * rows[p] ** 2", f"{KERNEL_NEWTON} -k rank"),
    Mutant(
        "advcli/features/kernels/pivots.py",
        "bisect_left(self.lefts, -left",
        "bisect_left(self.lefts, -2.0 * left",
        f"{KERNEL_NEWTON} -k fewest",
    ),
    # sketches of a kernel matrix, and splitting over them
    Mutant(
        "advcli/features/kernels/pivots.py", "remainder -= self.rows[:p, rows].T @ self.rows[:p]", "pass", f"{KERNEL_SPLITTING} -k but_for"
    ),
    Mutant("advcli/features/kernels/pivots.py", "order = order[:rank] - 1", "order = np.arange(rank)", f"{KERNEL_SPLITTING} -k but_for"),
    Mutant("advcli/features/kernels/kernel_map.py", "X = G - (along.T", "X = G + (along.T", f"{KERNEL_SPLITTING} -k of_its_matrix"),
    Mutant(
        "advcli/features/kernels/pivots.py",
        "(self.L[self.pivots], along",
        "(self.L[self.pivots].T, along",
        f"{KERNEL_SPLITTING} -k pivots",
    ),
    Mutant("advcli/solvers/kernel_splitting.py", "dual = problem.dual(R)", "dual = self.near.dual(R)", f"{KERNEL_SPLITTING} -k claimed"),
    Mutant("advcli/solvers/kernel_splitting.py", "self.gap > _STILL * self.gap_before", "False", f"{KERNEL_SPLITTING} -k neighbouring"),
    Mutant("advcli/solvers/kernel_splitting.py", " and _near(reserve.lam, problem.lam)", "", f"{KERNEL_SPLITTING} -k neighbouring"),
    Mutant("advcli/solvers/kernel_splitting.py", "> before:  # else", ">= before:  # else", f"{KERNEL_SPLITTING} -k rounding"),
    Mutant("advcli/solvers/newton/kernel.py", "root * (scaled - G @ cho", "root * (scaled + G @ cho", f"{KERNEL_NEWTON} -k sketch"),
    Mutant(
        "advcli/solvers/newton/kernel.py", "min(max(_TIMES * gap / square", "min(max(_TIMES * square / gap", f"{KERNEL_NEWTON} -k begins"
    ),
    Mutant("advcli/solvers/newton/kernel.py", "pull = F + product", "pull = F - product", f"{KERNEL_NEWTON} -k follow"),
    Mutant("advcli/solvers/newton/kernel.py", "by_class += np.asc", "by_class = np.asc", f"{KERNEL_NEWTON} -k product"),
    # Newton systems with a class less
    Mutant("_ext/newton/newton_faces.pyx", "H[<Py_ssize_t>j * p + i] -= each", "pass", f"{FACES} -k direction_solves", "newton_faces"),
    Mutant(
        "_ext/newton/newton_faces.pyx",
        "mean = (mean + common) * each",
        "mean = mean * each",
        f"{FACES} -k direction_solves",
        "newton_faces",
    ),
    Mutant("_ext/newton/newton_faces.pyx", "L[<Py_ssize_t>j * (p + 1)] += 1e-13 * largest", "pass", f"{FACES} -k lapack", "newton_faces"),
    Mutant(
        "_ext/newton/newton_faces.pyx",
        "pays = counts[0] + counts[1] <= most",
        "pays = counts[0] <= most",
        f"{FACES} -k follows",
        "newton_faces",
    ),
    Mutant(
        "_ext/newton/newton_faces.pyx",
        "width, left, counts[0], -1.0)",
        "width, left, counts[0], 1.0)",
        f"{FACES} -k follows",
        "newton_faces",
    ),
    Mutant("_ext/newton/newton_faces.pyx", "scale = sqrt(s.weight[i])", "scale = s.weight[i]", f"{FACES} -k follows", "newton_faces"),
    Mutant("advcli/features/linear.py", "self.updates += 1", "self.updates = 0", f"{NEWTON} -k follows"),
    # binary problems
    Mutant("_ext/ascent/ascent_binary.pyx", "linear += t.a * t.margin", "linear += t.a", BINARY, "ascent_binary"),
    Mutant(
        "_ext/ascent/ascent_binary.pyx",
        "gap = (t.c * g if g > 0.0 else 0.0) - t.a * g",
        "gap = (t.c * g if g > 0.0 else 0.0) - t.c * g",
        BINARY,
        "ascent_binary",
    ),
    Mutant(
        "_ext/ascent/adv_schedule.pxd",
        "s.active <= goal",
        "s.active <= 10.0 * goal",
        BINARY,
        "ascent_binary",
        equivalent="how long rows are visited",
    ),
    Mutant("_ext/ascent/ascent_binary.pyx", "gains[lane] > best", "gains[lane] < best", BINARY, "ascent_binary"),
    Mutant("_ext/ascent/ascent_binary.pyx", "p.whole.f[p.rest[j]] -= f", "p.whole.f[p.rest[j]] += f", BINARY, "ascent_binary"),
    Mutant("_ext/ascent/ascent_binary.pyx", "p.moved[i] += by", "p.moved[i] = by", BINARY, "ascent_binary"),
    Mutant("_ext/ascent/ascent_binary.pyx", "clipped(s.z[a], part.low[i]", "clipped(-s.z[a], part.low[i]", BINARY, "ascent_binary"),
    # thresholds
    Mutant(
        "_ext/newton/newton_threshold.pyx",
        "free_of[i] += 1 if 0.0 < a < U[j, i] else 0",
        "free_of[i] += 1 if 0.0 < a else 0",
        THRESHOLD,
        "newton_threshold",
    ),
    Mutant(
        "_ext/newton/newton_threshold.pyx",
        "sums += a * (deta[j] - deta[j + 1])",
        "sums += a * (deta[j + 1] - deta[j])",
        THRESHOLD,
        "newton_threshold",
    ),
    Mutant(
        "_ext/newton/newton_threshold.pyx",
        "rise += inverse if 0.0 < a < U[j, i] else 0.0",
        "rise += inverse",
        THRESHOLD,
        "newton_threshold",
    ),
    Mutant("_ext/ascent/ascent_pairs.pyx", "p.mu[q] += d", "p.mu[q] -= d", PAIRS, "ascent_pairs"),
    Mutant("_ext/ascent/ascent_pairs.pyx", "p.theta[of_up] -= d", "p.theta[of_up] += d", PAIRS, "ascent_pairs"),
    Mutant("_ext/ascent/ascent_pairs.pyx", "by * (load(a, <int>i) - load(b, <int>i))", "by * load(a, <int>i)", PAIRS, "ascent_pairs"),
    Mutant("_ext/ascent/ascent_pairs.pyx", "load(p.f, <int>b) + by * load(row, <int>b)", "load(p.f, <int>b)", PAIRS, "ascent_pairs"),
    Mutant("_ext/support/gaussian.pyx", "- (row + load(other", "- (row - load(other", GAUSSIAN, "gaussian"),
    Mutant("_ext/support/gaussian.pyx", "(X[i, c] - mean) * scale", "X[i, c] * scale", GAUSSIAN, "gaussian"),
    Mutant("_ext/support/gaussian.pyx", "for (; j < count; j++) to[j]", "for (; j + 1 < count; j++) to[j]", GAUSSIAN, "gaussian"),
    Mutant("advcli/solvers/newton/threshold.py", "room = np.where(change > 0.0, limit - a, a)", "room = limit", f"{ORDINAL} -k on_a_face"),
    Mutant("advcli/solvers/newton/threshold.py", "if point.t > _SETTLES:", "if True:", f"{ORDINAL} -k skewed"),
    Mutant(
        "advcli/solvers/newton/threshold.py",
        "left <= CLOSE * short or left <=",
        "left <= CLOSE * short and left <=",
        f"{ORDINAL} -k however",
    ),
    Mutant("advcli/solvers/newton/systems.py", "R[come] - across @ y]", "R[come]]", SYSTEMS),
    Mutant("advcli/solvers/newton/systems.py", "y -= V @ z", "y -= V[:, :k] @ z[:k]", SYSTEMS),
    Mutant("advcli/solvers/newton/systems.py", "self.widest = self._spread(rows, D)", "pass", SYSTEMS),
    Mutant("advcli/problems/threshold.py", "return 0.5 * (low + high)", "return low", f"{ORDINAL} -k middle"),
    Mutant(
        "advcli/problems/threshold.py",
        "mu = np.maximum(-np.cumsum",
        "mu = np.maximum(np.cumsum",
        f"{ORDINAL} -k multipliers",
    ),
    Mutant("advcli/problems/threshold.py", "np.column_stack([-r, r])", "np.column_stack([-r, 0.5 * r])", f"{SMOOTH} -k general"),
    Mutant("advcli/solvers/newton/smooth_threshold.py", "mu / r - mu / s)", "mu / s - mu / r)", f"{SMOOTH} -k general"),
    Mutant("advcli/learners/ordinal.py", "W *= np.diff(self.observed_)", "pass", f"{SMOOTH} -k does_not_occur"),
    Mutant("advcli/problems/threshold.py", "goal > 0.0, high, low) + rounding", "goal > 0.0, high, low)", f"{ORDINAL} -k no_dual_point"),
    # abstaining surrogates
    Mutant("_ext/families/adv_rejecting.pxd", "r[y] = -mass", "r[y] = mass", f"{CONTRACT}", "oracle"),
    # reductions
    Mutant("advcli/learners/reductions/schemes.py", "F[:, j] += S[:, at] <= 0.0", "F[:, j] += S[:, at] < 0.0", f"{REDUCTIONS} -k vote_at"),
    Mutant("advcli/learners/reductions/schemes.py", "        if trained[at]:\n", "        if True:\n", f"{REDUCTIONS} -k without_rows"),
    Mutant(
        "advcli/learners/reductions/schemes.py",
        "np.where(positive, costs.max(axis=1), costs.T)",
        "costs.T",
        f"{REDUCTIONS} -k 'definition and csova'",
    ),
    Mutant(
        "advcli/learners/reductions/schemes.py",
        "costs == costs.min(axis=1, keepdims=True)",
        "costs == 0.0",
        f"{REDUCTIONS} -k costs_of_rows",
    ),
    Mutant(
        "advcli/learners/reductions/learners.py", "return self.scheme.problems(len(self.classes_))", "return len(self.classes_)", REDUCTIONS
    ),
    Mutant("advcli/learners/reductions/learners.py", "np.argsort(order)[rows]", "order[rows]", f"{REDUCTIONS} -k proof_belongs"),
    Mutant(
        "advcli/learners/reductions/learners.py", "np.where(rows < 0, rows, ", "np.where(False, rows, ", f"{REDUCTIONS} -k proof_belongs"
    ),
    Mutant("advcli/learners/refitting.py", "(first + biases, *others)", "(first, *others)", f"{REDUCTIONS} -k saved_kernel"),
    # linear programs
    Mutant("advcli/core/highs.py", "ObjSense.kMaximize if", "ObjSense.kMinimize if", PROGRAMS),
    Mutant("advcli/core/highs.py", "np.tile(np.arange(n), m)", "np.repeat(np.arange(n), m)", PROGRAMS),
    # accepting with a guarantee
    Mutant("advcli/statistics/risk_coverage.py", "np.maximum(rank - (n - total[-1]), 0.0)", "np.maximum(rank - n, 0.0)", ACCEPTED),
    Mutant(
        "advcli/core/groups.py",
        "group = np.unique(-margin, return_inverse=True)",
        "group = np.unique(margin, return_inverse=True)",
        ACCEPTED,
    ),
)
SHARDS = "tests/solvers/test_solvers_shards.py"
SHARDED = (
    # rows in shards
    Mutant("advcli/solvers/shards/rows.py", "        self.known[at] = 0\n", "", f"{SHARDS} -k 'leave_no_trace'"),
    Mutant(
        "advcli/solvers/shards/rows.py",
        "for theta, mu in self.history[: point.moves]:",
        "for theta, mu in self.history:",
        f"{SHARDS} -k of_before",
    ),
    Mutant(
        "advcli/solvers/shards/rows.py",
        "self.centre = self._maximisers(RemoteDualPoint(len(self.history), *move))",
        "pass",
        f"{SHARDS} -k sums",
    ),
    Mutant(
        "advcli/solvers/shards/rows.py",
        "if self.lost[at] > self.restarts:",
        "if self.lost[at] >= self.restarts:",
        f"{SHARDS} -k no_more_deaths",
    ),
    Mutant(
        "advcli/learners/distributed.py",
        "weights = factor if weights is None else weights * factor",
        "weights = factor",
        "tests/system/test_system_distributed.py -k same_optimum",
    ),
    Mutant(
        "advcli/learners/distributed.py",
        "return self.whole.ridge(theta) + self.judgement.value / self.whole.n",
        "return self.judgement.value / self.whole.n",
        "tests/system/test_system_distributed.py -k same_optimum",
    ),
)

LEVELS_OF_TREES, LEAVES_CHECKED = (
    "tests/learners/test_learners_spaces_hierarchical_sets.py -k levels",
    "tests/verify/test_verify_leaf_sets.py",
)
LEAVES = (
    Mutant(
        "advcli/learners/structured/spaces/hierarchical_sets.py",
        "np.maximum(either[rows, self.empty[node]], 0.0)",
        "np.maximum(either[rows, self.empty[node]], -1.0)",
        LEVELS_OF_TREES,
    ),
    Mutant("advcli/learners/structured/spaces/hierarchical_sets.py", "(only > sums[rows, j])", "(only < sums[rows, j])", LEVELS_OF_TREES),
    Mutant("advcli/verify/leaf_sets.py", " or not sets.any(axis=1).all()", "", f"{LEAVES_CHECKED} -k refused"),
    Mutant(
        "advcli/verify/leaf_sets.py",
        "_larger(_added(some, _larger(more, without)), _added(none, more))",
        "_added(some, _larger(more, without))",
        f"{LEAVES_CHECKED} -k tight",
    ),
)

SCORES, THREADS = "tests/compiled/test_compiled_scores.py", "tests/solvers/test_solvers_threads.py"
SHARED_WORK = (
    Mutant("_ext/support/scores.pyx", "own[e] = place[columns[e]] - 1", "own[e] = 0", f"{SCORES} -k bits", "scores"),
    Mutant("_ext/support/scores.pyx", "begin = first\n", "begin = 0\n", f"{SCORES} -k left_alone", "scores"),
    Mutant("advcli/core/threads.py", "[*starts[1:], n]", "[*starts[1:], n - 1]", f"{THREADS} -k cover"),
    Mutant("advcli/core/threads.py", "step = LANES * -(-max(int(least), 1) // LANES)", "step = max(int(least), 1)", f"{THREADS} -k cover"),
    Mutant("advcli/problems/certificate.py", "replace(problem, threads=threads) if", "problem if", f"{THREADS} -k takes"),
    Mutant(
        "advcli/problems/risk.py",
        "if self.threads > 1 and self.loss.compiled else",
        "if self.threads > 1 else",
        f"{THREADS} -k python_code",
    ),
    Mutant("_ext/support/scores.pyx", "whose[at] // together == part:", "True:", f"{SCORES} -k sums", "scores"),
    Mutant(
        "_ext/support/scores.pyx", "sizes[at] = i, labels[e], numbers[e]", "sizes[at] = i, labels[e], 1.0", f"{SCORES} -k sums", "scores"
    ),
)

FEW, GRAMS = "tests/compiled/test_compiled_few_columns.py", "tests/compiled/test_compiled_grams.py"
PRODUCTS = (
    Mutant("_ext/support/few_columns.pyx", " and i * p.k + p.kp - p.k <= p.n * p.k", "", f"{FEW} -k loop", "few_columns"),
    Mutant("_ext/support/few_columns.pyx", " and p.down == p.k", "", f"{FEW} -k layout", "few_columns"),
    Mutant("_ext/support/few_columns.pyx", "if c < p.k else 0.0", "if c < 1 else 0.0", f"{FEW} -k loop", "few_columns"),
    Mutant("_ext/support/grams.pyx", "store(weighted, v, number * splat(weight))", "store(weighted, v, number)", GRAMS, "grams"),
    Mutant("_ext/support/grams.pyx", "&X[rows[i + q], 0]", "&X[rows[i], 0]", GRAMS, "grams"),
    Mutant("advcli/core/linalg.py", "1 < B.shape[1] <=", "0 < B.shape[1] <=", f"{FEW} -k portable"),
)

CUT = "tests/verify/test_verify_label_sets.py -k cut"
DECIDED, JUDGED, PAYING, MIXED = (
    "tests/verify/test_verify_decisions.py",
    "tests/verify/test_verify_metrics.py",
    "tests/verify/test_verify_thresholds.py -k pay",
    "tests/verify/test_verify_outcomes.py",
)
GROWING, PACKED = "tests/evaluation/test_evaluation_additions.py", "tests/core/test_core_archives.py"
OUTSIDE, PARQUET = "tests/learners/test_learners_sklearn_classifiers.py", "tests/system/test_system_distributed.py -k has_its_rows"
CHECKER = tuple(
    Mutant(*each)
    for each in (
        # shares that are none
        (
            "advcli/verify/label_sets.py",
            "return owner, number, cut(planes[:, 1], owner, examples)",
            "return owner, number, planes[:, 1]",
            CUT,
        ),
        ("advcli/verify/label_sets.py", "alpha = np.maximum(alpha, 0.0)\n", "pass\n", CUT),
        ("advcli/verify/label_sets.py", "np.where(sums[owner] > 1.0, alpha /", "np.where(sums[owner] > 9.0, alpha /", CUT),
        (
            "advcli/verify/sequences.py",
            "ball(cut(stored[head + 1], owner, len(sizes)))",
            "ball(stored[head + 1])",
            "tests/verify/test_verify_sequences.py -k cut",
        ),
        (
            "advcli/verify/leaf_sets.py",
            "return owner, cut(planes[:, 1], owner, n), planes",
            "return owner, planes[:, 1], planes",
            "tests/verify/test_verify_leaf_sets.py -k cut",
        ),
        ("advcli/verify/methods.py", "np.maximum(mixtures[:, 2], 0.0)", "mixtures[:, 2]", MIXED),
        ("advcli/verify/methods.py", "np.where(sums > 1.0, (1.0 - 1e-12) / np.maximum(sums, 1.0), 1.0)", "1.0 + 0.0 * sums", MIXED),
        ("advcli/verify/methods.py", "P = np.maximum(predictor, 0.0)", "P = predictor", MIXED),
        ("advcli/verify/methods.py", "outward(largest * astray)", "0.0 * astray", MIXED),
        ("advcli/verify/methods.py", "((places >= 0) & (places < (n, m))).all()", "(places < (n, m)).all()", MIXED),
        ("advcli/verify/thresholds.py", "- paid * share.size - square", "- square", PAYING),
        (
            "advcli/verify/thresholds.py",
            "paid = entropies.sum(), outward(float(lost.sum()), len(lost))",
            "paid = entropies.sum(), 0.0",
            PAYING,
        ),
        ("advcli/verify/thresholds.py", "return outward(float(total.sum().size))", "return 0.0", PAYING),
        ("advcli/verify/thresholds.py", "return outward(float(total.size.sum()), len(total.mid))", "return 0.0", PAYING),
        ("advcli/verify/thresholds.py", "missed = np.maximum(sums.high[:, 0], 0.0)", "missed = 0.0 * sums.high[:, 0]", PAYING),
        # predictions that are possible
        (
            "advcli/verify/decisions.py",
            "(margin.high > tau)[:, None]",
            "(margin.high > -9.0)[:, None]",
            f"{DECIDED} -k 'abstentions or threshold'",
        ),
        ("advcli/verify/decisions.py", "margin.low <= tau]", "margin.low < tau - 1e-12]", f"{DECIDED} -k threshold"),
        (
            "advcli/verify/decisions.py",
            "np.maximum(low[:, 1] - high[:, 0], 0.0)",
            "low[:, 1] - low[:, 1] + 9.0",
            f"{DECIDED} -k abstentions",
        ),
        (
            "advcli/verify/decisions.py",
            "scores = np.maximum(F.mid - top, -spread)",
            "scores = np.maximum(F.mid - top, -0.5 * spread)",
            f"{DECIDED} -k any_matrix",
        ),
        ("advcli/verify/decisions.py", "others[:, largest] = -1.0", "others[:, largest] = 0.0", f"{DECIDED} -k matrix"),
        (
            "advcli/verify/decisions.py",
            "if n * l * (l + k) > _MOST:",
            "if False and n * l * (l + k) > _MOST:",
            f"{DECIDED} -k without_ties",
        ),
        (
            "advcli/verify/decisions.py",
            "(low[:, None] - _CLOSE <= prediction + 0.5)",
            "(low[:, None] - _CLOSE <= prediction + 0.4)",
            f"{DECIDED} -k games",
        ),
        (
            "advcli/verify/decisions.py",
            "(high[:, None] + _CLOSE >= prediction - 0.5)",
            "(high[:, None] + _CLOSE >= prediction + 0.5)",
            f"{DECIDED} -k games",
        ),
        ("advcli/verify/decisions.py", "ordered[:, [max(rank, 2) - 1]]", "ordered[:, [rank - 2]]", f"{DECIDED} -k games"),
        ("advcli/verify/decisions.py", "if form is not None and form.alpha is not None:", "if False:", f"{DECIDED} -k games"),
        (
            "advcli/verify/decisions.py",
            "return _abstaining(F / form.scale, form.alpha)",
            "return _abstaining(F, form.alpha)",
            f"{DECIDED} -k scale",
        ),
        ("advcli/verify/surrogates.py", "elif len(self.matrix) != k or", "elif len(self.matrix) < k or", f"{DECIDED} -k games"),
        ("advcli/verify/surrogates.py", "return float(weight[0]) if len(weight) == 1 else 1.0", "return 1.0", f"{DECIDED} -k games"),
        (
            "advcli/verify/surrogates.py",
            '(0.0 if self.name == "abstain_ova" else 0.5) if tau is None',
            "0.5 if tau is None",
            f"{DECIDED} -k abstentions",
        ),
        (
            "advcli/verify/surrogates.py",
            "-((U * word).max(axis=1))",
            "-((U * word).sum(axis=1))",
            f"{DECIDED} -k abstentions",
        ),
        # metrics of these
        ("advcli/verify/metrics.py", "if metric in _OF_ORDER and possible[:, k:].any():", "if False:", f"{JUDGED} -k codes"),
        ("advcli/verify/metrics.py", "(possible[:, k:].any(axis=1) & ~possible[:, :k].any(axis=1)).any()", "True", f"{JUDGED} -k codes"),
        (
            "advcli/verify/metrics.py",
            "if metric not in _WHOLE or (possible.sum(axis=1) != 1).any():",
            "if metric not in _WHOLE:",
            f"{JUDGED} -k codes",
        ),
        ("advcli/verify/metrics.py", 'np.where(codes >= k, facts["alpha"], distance > 0)', "distance > 0", f"{JUDGED} -k codes"),
        ("advcli/verify/metrics.py", "worth = costs if metric in OF_COSTS and", "worth = costs if False and", f"{JUDGED} -k costs"),
        ("advcli/verify/metrics.py", "(y == z)[z < k].mean()", "(y == z).mean()", f"{JUDGED} -k codes"),
        (
            "advcli/verify/metrics.py",
            "np.where(possible, worth, np.inf).min(axis=1)",
            "np.where(possible, worth, -np.inf).max(axis=1)",
            f"{JUDGED} -k codes",
        ),
        (
            "advcli/verify/metrics.py",
            "for label in range(k) if (y == label).any()]",
            "for label in range(k - 1) if (y == label).any()]",
            f"{JUDGED} -k codes",
        ),
        ("advcli/verify/metrics.py", "(counts.sum(axis=axis) ** 2).sum()", "counts.sum(axis=axis).sum()", f"{JUDGED} -k codes"),
        ("advcli/verify/metrics.py", "np.fill_diagonal(shares, 0.0)", "pass", f"{JUDGED} -k codes"),
        (
            "advcli/verify/folder.py",
            "if not (least - slack <= value <= most + slack or",
            "if not (True or",
            f"{FOLDERS} -k 'falsified and abstaining_above'",
        ),
        (
            "advcli/verify/folder.py",
            'return "" if math.isnan(least) or most - least <= slack else f',
            'return "" if True else f',
            f"{FOLDERS} -k tie",
        ),
        # archives
        (
            "advcli/results/arrays.py",
            "heading.read_array(member, allow_pickle=False)",
            "heading.read_array(member, allow_pickle=True)",
            f"{PACKED} -k neither",
            "",
            "objects have been refused by their heading, whose kind is none of numbers and text",
        ),
        ("advcli/core/files.py", "if held > most_unpacked(size):", "if False:", f"{PACKED} -k unpacks"),
        ("advcli/core/files.py", "return max(2**28, 32 * size)", "return max(2**28, 2048 * size)", f"{PACKED} -k unpacks"),
        ("advcli/results/arrays.py", "begin + size != entry.file_size", "False", f"{PACKED} -k heading"),
        (
            "advcli/results/arrays.py",
            "if dtype.kind not in _KINDS:",
            "if False:",
            f"{PACKED} -k neither",
        ),
        ("advcli/results/arrays.py", "> most_unpacked(file.tell()):", "> 2**60:", f"{PACKED} -k compresses"),
        ("advcli/data/tables/table.py", "check_unpacked(archive, path.stat().st_size)", "pass", f"{PACKED} -k unpacks"),
        ("advcli/learners/sklearn.py", "if not isinstance(named, type) or not all(", "if not all(", f"{OUTSIDE} -k before"),
        (
            "advcli/learners/sklearn.py",
            "if not isinstance(named, type) or not all(",
            "if not isinstance(named, type) and not all(",
            f"{OUTSIDE} -k before",
        ),
        (
            "advcli/core/highs.py",
            "self.silent()\n            super().enableCallbacks()",
            "super().enableCallbacks()",
            "tests/core/test_core_highs.py -k says_nothing",
        ),
        # growth, shares, shards
        ("advcli/evaluation/additions.py", "if reading and not all(entry", "if reading and not any(entry", f"{GROWING} -k every_split"),
        ("advcli/evaluation/additions.py", "if reading and not all(entry", "if not all(entry", f"{GROWING} -k every_split"),
        (
            "advcli/evaluation/additions.py",
            'if not about.get("cell") or content["numbers"] != NUMBERS_VERSION:',
            'if not about.get("cell"):',
            f"{GROWING} -k anew",
        ),
        (
            "advcli/evaluation/additions.py",
            'if not about.get("cell") or content["numbers"] != NUMBERS_VERSION:',
            'if content["numbers"] != NUMBERS_VERSION:',
            f"{GROWING} -k anew",
        ),
        (
            "advcli/evaluation/learning.py",
            "place[rows_of_class] = np.arange(len(rows_of_class)) / len(rows_of_class)",
            "place[rows_of_class] = (np.arange(len(rows_of_class)) + 1) / len(rows_of_class)",
            "tests/evaluation/test_evaluation_learning.py -k share_of",
        ),
        (
            "advcli/evaluation/learning.py",
            "place[rows_of_class] = np.arange(len(rows_of_class)) / len(rows_of_class)",
            "place[rows_of_class] = np.arange(len(rows_of_class)) / len(place)",
            "tests/evaluation/test_evaluation_learning.py -k share_of",
        ),
        (
            "advcli/evaluation/learning.py",
            "np.flatnonzero(place < share)",
            "np.flatnonzero(place <= share)",
            "tests/evaluation/test_evaluation_learning.py -k share_of",
        ),
        (
            "advcli/learners/ordinal.py",
            "g = point.g if not self.ridge else point.g - self.ridge * point.v / _or_one(bound.weights)",
            "g = point.g",
            "tests/learners/test_learners_ordinal.py -k distinct",
        ),
        (
            "advcli/learners/ordinal.py",
            "point.g - self.ridge * point.v / _or_one(bound.weights)",
            "point.g - self.ridge * point.v",
            "tests/learners/test_learners_ordinal.py -k distinct",
        ),
        ("advcli/reports/across.py", "if smallest >= alpha:", "if smallest > alpha:", f"{ACROSS} -k level"),
        ("advcli/learners/distributed.py", "low, high = max(begin, first), min(end, last)", "low, high = first, min(end, last)", PARQUET),
        ("advcli/learners/distributed.py", "low, high = max(begin, first), min(end, last)", "low, high = max(begin, first), last", PARQUET),
        ("advcli/learners/distributed.py", ".slice(low - first, high - low)", ".slice(0, high - low)", PARQUET),
        (
            "advcli/learners/distributed.py",
            "if first >= end or at <= begin:",
            "if first >= end or at <= begin + 1:",
            PARQUET,
        ),
    )
)

MIXTURES, MIXED = "advcli/learners/costs/mixtures.py", "tests/learners/test_learners_metric.py"
METRIC_AS_LOSS = (
    Mutant(MIXTURES, "value - float(slopes @ r)", "value", f"{MIXED} -k differences"),
    Mutant(MIXTURES, "high = high if value >= middle else middle", "high = 1.0", f"{MIXED} -k enclose"),
    Mutant(MIXTURES, "(weights > _NO_WEIGHT) | (value <= 0.0)", "weights > _NO_WEIGHT", f"{MIXED} -k no_first"),
    Mutant(MIXTURES, "G[at, at] += 2.0 / totals", "G[at, at] += 1.0 / totals", f"{MIXED} -k differences"),
    Mutant("advcli/learners/costs/metric.py", "rows.eliminate_zeros()", "pass", f"{MIXED} -k draws"),
)

MUTANTS: tuple[Mutant, ...] = (
    *METRIC_AS_LOSS,
    *CHECKER,
    *SHARED_WORK,
    *PRODUCTS,
    *LISTS_OF_CLASSES,
    *ROWS_IN_BLOCKS,
    *STEPS_ON_FACES,
    *ORDERS_OF_VISITS,
    *SETS_AT_A_PRICE,
    *WITHOUT_KERNELS,
    *KERNELS,
    *REFEREE,
    *RECIPE,
    *SEARCH,
    *SETTINGS,
    *VERIFY,
    *PROOFS,
    *FOREIGN_WEIGHTS,
    *CHECK,
    *CLI,
    *ENDINGS,
    *RECORDS,
    *REPORTS,
    *MODELS,
    *RIVALS,
    *SHARDED,
    *LEAVES,
)
