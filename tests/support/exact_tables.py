"""Tables of numbers with the bits that were written: pandas before 3 rounds the last digit."""

from functools import partial

import pandas as pd

exact = partial(pd.read_csv, float_precision="round_trip")
