"""Tables of numbers with the bits that were written, whatever version of pandas reads them."""

from functools import partial

import pandas as pd

from advcli.data.tables.table import exact_numbers

exact = partial(pd.read_csv, **exact_numbers())
