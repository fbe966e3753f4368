"""Results folders with planted rows."""

import numpy as np
import pytest
from support.quick_pages import DRAWN

from advcli.results.folder import ResultsFolder

N_TRAIN, N_TEST = 105, 45


def cell_rows(dataset, method, errors, *, metrics=("error",), n_test=N_TEST, seed=0, **more):
    """Return the rows of one cell; an error count of None is a failed split."""
    rows = []
    for split, count in enumerate(errors, start=1):
        for metric in metrics:
            share = None if count is None else count / n_test
            value = 1 - share if metric == "accuracy" and share is not None else share
            rows.append(
                {
                    "dataset": dataset,
                    "loss": method.split()[0],
                    "features": "linear",
                    "solver": "dual",
                    "method": method,
                    "split": split,
                    "metric": metric,
                    "value": value,
                    "C": 4.0,
                    "n_train": N_TRAIN,
                    "n_test": n_test,
                    "n_features": 4,
                    "n_classes": 3,
                    "relative_gap": None if count is None else 1e-4 * split,
                    "passes": None if count is None else 7,
                    "converged": None if count is None else True,
                    "fit_seconds": 0.01,
                    "seed": seed,
                    "status": "failed" if count is None else "ok",
                    "error": "solver broke" if count is None else "",
                    "options": "protocol.name=standard",
                    "cell": f"{dataset}-{method}-{seed}".replace(" ", "-"),
                    **more,
                }
            )
    return rows


def make_folder(path, *cells, provenance=None, about=None):
    """Write cells into a new results folder and merge them."""
    folder = ResultsFolder(path)
    folder.prepare({})
    for rows in cells:
        head = rows[0]
        facts = {
            "dataset": head["dataset"],
            "method": head["method"],
            "dataset_sha256": f"content of {head['dataset']}",
            "cell": {
                "dataset": {"name": head["dataset"]},
                "seed": head["seed"],
                "protocol": {"splits": "random", "train_size": 0.7, "n_splits": len(rows)},
                "solver": {"tol": 1e-3},
            },
            **(about or {}),
        }
        failed = any(row["status"] == "failed" for row in rows)
        folder.write_cell(head["cell"], rows, about=facts, traceback="Traceback" if failed else None)
    if provenance is not None:
        folder.write_provenance(provenance, 0.0, 1.0)
    folder.merge()
    return folder


def sweep(n_datasets=8, methods=("zero_one linear", "ww linear", "llw linear"), seed=0, **more):
    """Return cells of a sweep in which later methods are worse by four errors each."""
    rng = np.random.default_rng(seed)
    cells = []
    for at in range(n_datasets):
        base = rng.integers(2, 6, size=20)
        for place, method in enumerate(methods):
            errors = (base + 4 * place + rng.integers(0, 3, size=20)).tolist()
            cells.append(cell_rows(f"set_{at}", method, errors, seed=0, **more))
    return cells


@pytest.fixture(scope="session")
def planted():
    """Give the makers of rows and folders."""

    class Planted:
        rows = staticmethod(cell_rows)
        folder = staticmethod(make_folder)
        sweep = staticmethod(sweep)

    return Planted


@pytest.fixture(scope="module", autouse=True)
def _drawn_figures():
    """Everything that a user gets, in reports that several tests share, too."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(DRAWN, "1")
        yield
