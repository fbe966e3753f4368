"""The instruction sets that tests of the compiled kernels run at."""

import pytest

from advcli.core.compiled import usable_levels


def levels():
    """Return the usable levels as parameters; those between the widest and portable are marked slow.

    Where levels are compared with each other (`test_levels_agree` and its like), every usable level takes part in every run.
    """
    widest, *between = usable_levels()
    return [widest, *(each if each == "portable" else pytest.param(each, marks=pytest.mark.slow) for each in between)]
