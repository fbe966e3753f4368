"""Measure what each constant of the solvers is worth: python benchmarks/speed/constants.py [SOLVERS] [--repeats N].

Every constant of a solver's modules is halved and doubled, and the solver runs its three problems, small ones that come with scikit-learn
or are drawn. The figures are counts of passes and Newton steps, which no other program disturbs, and ratios of processor seconds. What a
constant decides is read from the comment at its line.
"""

import argparse
import importlib
import io
import re
import sys
import time
import tokenize
import warnings
from pathlib import Path

import numpy as np
from measure import standardised
from threadpoolctl import threadpool_limits

ROOT = "advcli.solvers."
MODULES = {
    "newton": ("newton.proximal", "newton.linear"),
    "box": ("newton.proximal", "newton.box"),
    "binary": ("newton.proximal", "newton.binary"),
    "thresholds": ("newton.proximal", "newton.threshold", "newton.systems"),
    "kernel_newton": ("newton.kernel",),
    "lbfgs": ("lbfgs",),
    "interior_point": ("interior_point",),
    "kernel_splitting": ("kernel_splitting",),
    "distributed": ("shards.rows", "shards.solver"),
    "constraint_generation": ("constraint_generation",),
    "cutting_planes": ("cutting_planes",),
    "stochastic": ("stochastic.sag", "stochastic.subgradient"),
    "auto": ("auto",),
}
CODES = {"_LINEAR", "_THRESHOLD", "_KERNEL"}
"""Names for codes of compiled loops, which are no quantities."""
CLASSES = {"MAX_INNER": ("newton.proximal", "ProximalMethod"), "_MAX_INNER": ("newton.box", "_BoxStep")}
"""Constants that are also an attribute ``most_inner`` of a class."""
WAITS = {"_ROOM", "_ANSWER"}
"""Seconds that are waited for others, which no problem here reaches."""


# ---- problems ---------------------------------------------------------------------------------------------------------
def rows_of(name, most=None):
    """Return standardised rows with a constant, and codes, of a data set of scikit-learn."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    mix = np.random.default_rng(0).permutation(len(y))[:most]
    return standardised(X[mix]), np.unique(y[mix], return_inverse=True)[1].astype(np.intp)


def ordered(n, d=4, k=4):
    """Return drawn rows, and codes of k classes in order."""
    random = np.random.default_rng(n)
    X = random.normal(size=(n, d))
    z = X @ random.normal(size=d) + 0.7 * random.normal(size=n)
    return X, np.searchsorted(np.quantile(z, np.linspace(0, 1, k + 1)[1:-1]), z).astype(np.intp)


def solved(solver, data, loss, C, features="linear", tol=1e-3, start=None, **options):
    """Return a run of a solver by its name on rows and codes, from its solution at C = ``start``."""
    from advcli.features import make_features
    from advcli.losses import make_loss
    from advcli.problems.risk import Problem
    from advcli.solvers import Limits, make_solver

    X, y = data
    k = int(y.max()) + 1

    def at(C, before=None):
        bound = make_features(features, X, k, **options)
        problem = Problem(bound, make_loss(loss, k), y, 1.0 / (C * len(y)), tolerance=bound.tolerance(y, None))
        return make_solver(solver).solve(problem, Limits(tol, max_passes=2_000), before)

    return lambda: at(C, None if start is None else at(start))


def boxed(solver, data, loss, tol=1e-3):
    """Return a run with the moments in a box, lambda = 0."""
    return solved(solver, data, loss, np.inf, "linear", tol, moments="box")


def fitted(name, data, **options):
    """Return a run of an estimator."""
    import advcli

    return lambda: getattr(advcli, name)(max_passes=20_000, **options).fit(*data)


def label_sets(n, labels):
    """Return drawn rows and label sets."""
    random = np.random.default_rng(labels)
    X = random.normal(size=(n, 6))
    return X, (X @ random.normal(size=(6, labels)) + random.normal(size=(n, labels)) > 0.3).astype(int)


def problems():
    """Return three named runs of each solver."""
    iris, wine, cancer, digits = rows_of("iris"), rows_of("wine"), rows_of("breast_cancer"), rows_of("digits", 300)
    rbf = {"features": "rbf", "gamma": 0.05}
    return {
        "newton": {
            "wine zero_one C=512": solved("newton", wine, "zero_one", 512.0),
            "iris llw C=512 from C=1": solved("newton", iris, "llw", 512.0, start=1.0),
            "breast_cancer ww C=2^14": solved("newton", cancer, "ww", 2.0**14),
        },
        "box": {
            "iris zero_one": boxed("box", iris, "zero_one"),
            "wine llw": boxed("box", wine, "llw"),
            "wine ww": boxed("box", wine, "ww"),
        },
        "binary": {
            "wine C=512": fitted("OneVersusAllClassifier", wine, C=512.0),
            "breast_cancer C=16": fitted("OneVersusAllClassifier", cancer, C=16.0),
            "iris rbf C=512": fitted("OneVersusOneClassifier", iris, C=512.0, features="rbf"),
        },
        "thresholds": {
            "400 rows it C=10": fitted("OrdinalClassifier", ordered(400), method="it", ordered=True, C=10.0),
            "300 rows svorim rbf C=100": fitted("OrdinalClassifier", ordered(300), method="svorim", features="rbf", C=100.0),
            "700 rows svorex rbf C=2^12": fitted("OrdinalClassifier", ordered(700), method="svorex", features="rbf", C=4096.0),
        },
        "kernel_newton": {
            "wine zero_one rbf C=16": solved("kernel_newton", wine, "zero_one", 16.0, **rbf),
            "breast_cancer zero_one rbf C=2^12 by auto": solved("auto", cancer, "zero_one", 4096.0, features="rbf", gamma=0.004),
            "digits llw rbf C=16": solved("kernel_newton", digits, "llw", 16.0, features="rbf", gamma=2.0**-6),
        },
        "lbfgs": {
            "iris zero_one C=1": solved("lbfgs", iris, "zero_one", 1.0),
            "wine ww C=1": solved("lbfgs", wine, "ww", 1.0),
            "iris zero_one in a box": boxed("lbfgs", iris, "zero_one", 1e-2),
        },
        "interior_point": {
            "iris zero_one C=512": solved("interior_point", iris, "zero_one", 512.0, tol=1e-5),
            "wine absolute C=16": solved("interior_point", wine, "absolute", 16.0, tol=1e-5),
            "iris absolute thresholds C=1": solved("interior_point", iris, "absolute", 1.0, "threshold", 1e-5),
        },
        "kernel_splitting": {
            "wine llw rbf C=16": solved("kernel_splitting", wine, "llw", 16.0, **rbf),
            "digits llw rbf C=1, few pivots": solved("kernel_splitting", digits, "llw", 1.0, features="rbf", gamma=2.0**-12),
            "iris absolute rbf thresholds C=16": solved("kernel_splitting", iris, "absolute", 16.0, "rbf_threshold", gamma=0.05),
        },
        "distributed": {
            "iris zero_one C=1": solved("distributed", iris, "zero_one", 1.0),
            "wine ww C=1": solved("distributed", wine, "ww", 1.0),
            "breast_cancer cs C=1": solved("distributed", cancer, "cs", 1.0),
        },
        "constraint_generation": {
            "iris zero_one C=1": solved("constraint_generation", iris, "zero_one", 1.0),
            "wine cs C=1": solved("constraint_generation", wine, "cs", 1.0),
            "iris zero_one rbf C=1": solved("constraint_generation", iris, "zero_one", 1.0, **rbf),
        },
        "cutting_planes": {
            "4 labels C=1": fitted("MultilabelClassifier", label_sets(60, 4), C=1.0),
            "6 labels C=16": fitted("MultilabelClassifier", label_sets(60, 6), C=16.0),
            "6 labels, tol 1e-5, C=1": fitted("MultilabelClassifier", label_sets(60, 6), C=1.0, tol=1e-5),
        },
        "stochastic": {
            "sag iris zero_one C=1": solved("sag", iris, "zero_one", 1.0),
            "adagrad wine zero_one C=0.1": solved("adagrad", wine, "zero_one", 0.1, tol=3e-2),
            "sgd iris zero_one in a box": boxed("sgd", iris, "zero_one", 0.1),
        },
        "auto": {
            "breast_cancer ww C=512": solved("auto", cancer, "ww", 512.0),
            "wine llw rbf C=16": solved("auto", wine, "llw", 16.0, **rbf),
            "breast_cancer zero_one rbf C=2^12": solved("auto", cancer, "zero_one", 4096.0, features="rbf", gamma=0.004),
        },
    }


# ---- constants --------------------------------------------------------------------------------------------------------
def numeric(value):
    """Return whether a value is a number or holds nothing else."""
    return all(map(numeric, value)) if isinstance(value, tuple) else isinstance(value, (int, float)) and not isinstance(value, bool)


def scaled(value, factor):
    """Return a constant times a factor; a whole number stays whole and at least 1."""
    if isinstance(value, tuple):
        return tuple(scaled(each, factor) for each in value)
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


def constants(module):
    """Return (name, value, what the comment says) of every number of a module, in its order."""
    source = Path(module.__file__).read_text(encoding="utf-8")
    above, comment, found = "", {}, []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.start[1] == 0:
            above = f"{above} {token.string.lstrip('# ')}".strip()
        elif token.type == tokenize.COMMENT:
            comment[token.start[0]] = token.string.lstrip("# ")
        elif token.type == tokenize.NAME and token.start[1] == 0:
            comment.setdefault(-token.start[0], above)
            above = ""
    for number, line in enumerate(source.splitlines(), 1):
        left, equal, _ = line.partition(" = ")
        names = [name.strip() for name in left.split(":")[0].split(",")]
        if (
            equal
            and line[:1] not in " #"
            and all(name.isupper() and name not in CODES and numeric(getattr(module, name)) for name in names)
        ):
            why = comment.get(number) or comment.get(-number, "")
            found += [(name, getattr(module, name), why.removesuffix(",").removesuffix(".")) for name in names]
    return found


def of_solver(solver):
    """Return (module, name, value, what it decides) of a solver's constants; of a shared module those that its others name."""
    every = [importlib.import_module(ROOT + short) for short in MODULES[solver]]
    own = "".join(Path(module.__file__).read_text(encoding="utf-8") for module in every if module.__name__ != f"{ROOT}newton.proximal")
    for module in every:
        for name, value, why in constants(module):
            inherited = name in CLASSES and "most_inner = " not in own
            if inherited or module.__name__ != f"{ROOT}newton.proximal" or re.search(rf"\b{name}\b", own):
                yield module, name, value, why


def patched(module, name, value):
    """Set a constant where it is made and where a public one was taken to; return what sets it back."""
    before = getattr(module, name)
    homes = [module]
    if not name.startswith("_"):
        homes += [other for key, other in list(sys.modules.items()) if key.startswith(ROOT) and getattr(other, name, None) is before]
    if name in CLASSES:
        home, made = CLASSES[name]
        homes.append(getattr(importlib.import_module(ROOT + home), made))
    names = ["most_inner" if isinstance(home, type) else name for home in homes]
    for home, attribute in zip(homes, names, strict=True):
        setattr(home, attribute, value)

    def restore():
        for home, attribute in zip(homes, names, strict=True):
            setattr(home, attribute, before)

    return restore


# ---- measuring --------------------------------------------------------------------------------------------------------
def count(run):
    """Return the passes of a run with its Newton steps and a status that is not "converged", the bits of its answer, and seconds."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = run()
    seconds = time.process_time() - start
    judged = getattr(answer, "certificate_", answer)
    steps = getattr(answer, "memory", {}).get("newton_steps")
    text = f"{judged.passes:.4g}" if not steps else f"{judged.passes:.4g}+{steps:.4g}"
    if judged.status != "converged":
        text += f" ({judged.status})"
    theta = getattr(answer, "theta_", getattr(answer, "theta", getattr(answer, "coef_", np.empty(0))))
    return text, np.asarray(theta).tobytes(), seconds


def attempt(run):
    """Return what `count` does, an error's name in the place of the counts."""
    try:
        return count(run)
    except Exception as error:
        return type(error).__name__, b"", float("nan")


def measured(runs, module, name, value, repeats):
    """Return for half and double the counts and whether all bits stay, and the ratio of seconds over all problems."""
    seconds, counts, same = {1.0: [], 0.5: [], 2.0: []}, {}, {}
    for _ in range(repeats):
        for factor in seconds:
            restore = patched(module, name, scaled(value, factor))
            try:
                answers = [attempt(run) for run in runs.values()]
            finally:
                restore()
            counts[factor] = [text for text, _, _ in answers]
            same[factor] = [bits for _, bits, _ in answers]
            seconds[factor].append(sum(spent for _, _, spent in answers))
    ratio = {factor: float(np.median(seconds[factor]) / np.median(seconds[1.0])) for factor in (0.5, 2.0)}
    return counts, {factor: same[factor] == same[1.0] for factor in (0.5, 2.0)}, ratio


def shown(value):
    """Return a number as it is written."""
    return "(" + ", ".join(map(shown, value)) + ")" if isinstance(value, tuple) else f"{value:.4g}"


def table(solver, runs, repeats):
    """Print the table of a solver."""
    base = [attempt(run)[0] for run in runs.values()]
    print(f"\n## {solver}\n\nProblems: {'; '.join(f'{name}: {text}' for name, text in zip(runs, base, strict=True))}.\n")
    print("| constant | value | what it decides | half | double | seconds, half and double |\n|---|---|---|---|---|---|")
    for module, name, value, why in of_solver(solver):
        cells = ["", "", ""]
        if name not in WAITS:
            counts, same, ratio = measured(runs, module, name, value, repeats)
            cells = ["same" if same[factor] else ", ".join(counts[factor]) for factor in (0.5, 2.0)]
            cells.append("" if all(same.values()) else f"{ratio[0.5]:.2f}, {ratio[2.0]:.2f}")
        why = why.replace("|", "\\|")
        print(f"| `{name}` | {shown(value)} | {why} | {' | '.join(cells)} |", flush=True)


def main(arguments=None):
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("solvers", nargs="*", metavar="SOLVERS", help=f"which, all by default: {', '.join(MODULES)}")
    parser.add_argument("--repeats", type=int, default=3, help="repeats, interleaved; medians of seconds are shown")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.solvers if name not in MODULES]
    if unknown:
        parser.error(f"unknown solver {unknown[0]}; choose from {', '.join(MODULES)}")
    every = problems()
    with threadpool_limits(1):
        for solver in given.solvers or MODULES:
            table(solver, every[solver], given.repeats)


if __name__ == "__main__":
    main()
