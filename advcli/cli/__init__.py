"""The command line: one Hydra application whose first word may name an action, and whose jobs are cells (data set x method).

Hydra composes the configuration, expands sweeps and launches jobs; everything else happens in the package. Two rules keep
Hydra's ways of failing out of sight: the task function never raises and never exits, and every cell of a sweep is composed and
checked before the first one starts. Nothing heavy is imported at the top, because every <TAB> of completion runs this package.

`main` goes from words to an action, `actions` has one file for each of them, `hydra_app` runs Hydra, `launching` its sweeps.
"""

from .main import main

__all__ = ["main"]
