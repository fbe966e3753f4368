"""A second referee, which trusts nobody: proves the gaps of a results folder again from the data and the stored proofs alone.

Its formulas are written anew on purpose. It imports nothing of solvers, learners, losses, feature maps or compiled modules.
"""

from .folder import Verdict, verify_folder

__all__ = ["Verdict", "verify_folder"]
