import sys
from pathlib import Path

import pytest

# `reference` and the helpers of this folder are plain modules; appended, so that they cannot shadow an installed package
for folder in (Path(__file__).parents[1], Path(__file__).parent):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))

from instruction_sets import levels  # noqa: E402

from advcli.compiled import Kernels  # noqa: E402


@pytest.fixture(params=levels(), scope="session")
def kernels(request):
    return Kernels(request.param)
