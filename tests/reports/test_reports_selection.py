"""The figure of the search: what stands at a strength is one candidate, whatever its other hyper-parameters are called."""

from __future__ import annotations

import pandas as pd
import pytest

from advcli.reports.figures.selection import _path


@pytest.mark.parametrize(("name", "values"), [("gamma", (0.5, 2.0)), ("bend", (0.5, 2.0)), ("loss.options.kernel", ("flat", "round"))])
def test_a_strength_stands_for_its_best_candidate(name: str, values: tuple[object, object]) -> None:
    errors = {(1.0, values[0]): 0.4, (1.0, values[1]): 0.2, (2.0, values[0]): 0.1, (2.0, values[1]): 0.3}
    rows = [
        {"stage": 1, "C": C, name: value, "fold": fold, "value": error + 0.01 * fold, "relative_gap": 0.0}
        for (C, value), error in errors.items()
        for fold in (-1, 1)
    ]
    found = _path(pd.DataFrame(rows), "C", "error")
    assert found["mean"].tolist() == pytest.approx([0.2, 0.1])
    assert found["n"].tolist() == [2, 2]
