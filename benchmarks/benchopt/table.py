"""The table of the docs from what `benchopt run` wrote: python table.py outputs/*.parquet."""

import re
import sys

import pandas as pd

GOAL = 1e-3


def first_times(frame):
    """Return processor seconds of the first run of a certified gap, infinite where there was none, for each problem and solver."""
    parts = frame["objective_name"].str.extract(r"\[C=(?P<C>[^,\]]+),model=(?P<model>\w+)\]")
    frame = frame.assign(
        C=parts["C"].astype(float),
        model=parts["model"],
        data=frame["dataset_name"].str.replace(r".*name_=(\w+).*", r"\1", regex=True),
        solver=frame["solver_name"].map(lambda name: re.sub(r"\[solver=(\w[\w-]*)\]", r" \1", name).replace(" auto", "")),
    )
    linear = (frame["model"] != "logistic") & frame["solver"].str.startswith("scikit-learn")
    frame["solver"] = frame["solver"].mask(linear, "scikit-learn LinearSVC")
    frame = frame[frame["stop_val"] <= 1.0]
    frame["seconds"] = frame["objective_processor"].where(frame["objective_value"] <= GOAL, float("inf"))
    keys = ["model", "data", "C", "solver"]
    each = frame.groupby([*keys, "idx_rep"])["seconds"].min()
    return each.groupby(keys).median().unstack("solver")


def main(paths):
    """Print one line for each model and solver, then every problem that advcli was not the first on."""
    times = first_times(pd.concat([pd.read_parquet(path) for path in paths]))
    print("| model | solver | certified | first | seconds, median | slower than the first, median |\n|---|---|---|---|---|---|")
    for model, part in times.groupby(level="model"):
        part = part.dropna(axis=1, how="all")
        best = part.min(axis=1)
        for solver in part:
            column = part[solver].dropna()
            done = column[column < float("inf")]
            ratio = (done / best[done.index]).median()
            first = int((done <= best[done.index]).sum())
            middle = f"{done.median():.3g} | {ratio:.2g}" if len(done) else "- | -"
            print(f"| {model} | {solver} | {len(done)} of {len(column)} | {first} | {middle} |")
    print()
    own = [solver for solver in times if solver.startswith("advcli")]
    for place, row in times.iterrows():
        rivals = row.drop(own).dropna()
        if "advcli" in row.index and len(rivals) and rivals.min() < row["advcli"]:
            print(f"- {place[0]}, {place[1]}, C = {place[2]:g}: {rivals.idxmin()} {rivals.min():.3g} s, advcli {row['advcli']:.3g} s")


if __name__ == "__main__":
    main(sys.argv[1:])
