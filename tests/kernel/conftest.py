import sys
from pathlib import Path

# `reference` is a plain module; appended, so that it cannot shadow an installed package
if str(Path(__file__).parents[1]) not in sys.path:
    sys.path.append(str(Path(__file__).parents[1]))
