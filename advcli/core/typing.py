"""Names of the arrays and mappings that travel through the package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Numbers, of any shape."""

Labels = NDArray[np.intp]
"""Indices of classes, 0 for the first."""

Options = Mapping[str, Any]
"""Options by name, as a configuration gives them."""

Layout = Literal["C", "F"]
"""Order of an array in memory: row by row, or column by column."""
