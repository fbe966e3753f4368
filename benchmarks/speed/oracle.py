"""The zero-one value of many rows against numpy's sort, and against reading the scores once."""

import numpy as np
from measure import Row, interleaved, repeated

from advcli.losses import make_loss


def numpy_value(F, y):
    """The same values by a sort of every row."""
    ordered = -np.sort(-F, axis=1)
    tau = ((np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, F.shape[1] + 1)).max(axis=1)
    return 1.0 + tau - F[np.arange(len(y)), y]


def oracle(options):
    """Rows: k = 3, 10, 26, 100, 1000; normal scores, and one label ahead as in a trained model. The targets are those of k = 10."""
    rows = []
    for k in (3, 10, 26, 100, 1000):
        n = options.size(100_000 if k < 1000 else 20_000, 200)
        random = np.random.default_rng(k)
        y = random.integers(k, size=n).astype(np.intp)
        shapes = {"normal": random.normal(size=(n, k)), "margin": 0.2 * random.normal(size=(n, k))}
        shapes["margin"][np.arange(n), y] += 1.0
        loss = make_loss("zero_one", k)
        for shape, F in shapes.items():
            assert np.abs(loss.value(F, y) - numpy_value(F, y)).max() <= 1e-12 * k
            calls = {
                "ours": lambda loss=loss, F=F, y=y: repeated(lambda: loss.value(F, y)),
                "sort": lambda F=F, y=y: repeated(lambda: numpy_value(F, y)),
                "floor": lambda F=F: repeated(F.sum),
            }
            found = interleaved(calls, options.repeats)
            each = {name: 1e9 * seconds / (n * k) for name, seconds in found.items()}
            detail = ", ".join(f"{name} {value:.3g} ns/label" for name, value in each.items())
            goals = ((3.0, 25.0), (60.0, 6.0)) if k == 10 else ((None, None), (None, None))
            rows.append(Row(f"numpy sort / zero_one oracle, k={k}, {shape}", each["sort"] / each["ours"], *goals[0], detail=detail))
            rows.append(Row(f"zero_one oracle / memory floor, k={k}, {shape}", each["ours"] / each["floor"], *goals[1], larger=False))
    return rows
