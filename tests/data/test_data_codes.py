"""Labels as positions among those that occur: counted where they are whole numbers close together, with the answer of a sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from advcli.data.labels.codes import occurring

WHOLE = [f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)]


def assert_as_unique(y):
    labels, positions = occurring(y)
    wanted, places = np.unique(y, return_inverse=True)
    assert labels.dtype == wanted.dtype == y.dtype
    assert labels.tolist() == wanted.tolist()
    assert positions.tolist() == places.tolist()


@given(
    y=st.sampled_from([*WHOLE, "U2", "f8", "?"]).flatmap(
        lambda kind: hnp.arrays(kind, st.integers(1, 30), elements={"allow_nan": False} if kind == "f8" else None)
    )
)
def test_any_labels(y):
    assert_as_unique(y)


@pytest.mark.parametrize("kind", WHOLE)
@given(spread=st.lists(st.integers(0, 20), min_size=1, max_size=40), at_the_end=st.booleans())
def test_whole_numbers_close_together_at_either_end_of_their_type(kind, spread, at_the_end):
    limits = np.iinfo(kind)
    assert_as_unique(np.array([limits.max - each if at_the_end else limits.min + each for each in spread], dtype=kind))
