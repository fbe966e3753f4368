import sys
from pathlib import Path

# `every_set` is a plain module; appended, so that it cannot shadow an installed package
folder = str(Path(__file__).parent)
if folder not in sys.path:
    sys.path.append(folder)
