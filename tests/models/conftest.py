"""One thread for linear algebra: the last bits of a product must not depend on how it was split."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
