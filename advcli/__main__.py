"""Run the command line with ``python -m advcli``."""

import sys

from advcli.cli import main

if __name__ == "__main__":
    sys.exit(main())
