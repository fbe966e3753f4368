"""A second referee, which trusts nobody: the gaps of a results folder are proved again from the data and the stored proofs alone.

The formulas are written anew on purpose: no module of solvers, learners, losses or feature maps and no compiled one is imported.
"""

from .folder import Verdict, summary, verify_folder

__all__ = ["Verdict", "summary", "verify_folder"]
