import sys
from pathlib import Path

# `reference` is a plain module; appended, so that it cannot shadow an installed package
folder = str(Path(__file__).parents[1])
if folder not in sys.path:
    sys.path.append(folder)
