"""Every test of a kernel runs at each instruction set of this processor."""

import pytest
from support.instruction_sets import levels

from advcli.core.compiled import Kernels


@pytest.fixture(params=levels(), scope="session")
def kernels(request):
    return Kernels(request.param)
