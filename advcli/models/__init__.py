"""Fitted methods as files: everything between a raw row and its prediction, in a format that executes nothing when it is read.

A model file is a zip archive without compression:

    model.json       format and its version, parameters of the estimator, labels, encoding of columns, how it was made, its certificate
    arrays/NAME.npy  parameters, standardisation, support vectors; NumPy's format, read without pickle
    sha256           checksum of all the others, one line

The same fit gives the same bytes. A file of a newer format, a damaged or a truncated one is refused by one line (`ModelError`).

What another package learned fits no such format, but for linear classifiers of scikit-learn (`Learner.kept_by_pickle`). It is kept by
pickle, which executes what it reads, where the name of the file ends in ``.joblib``, and read where the caller trusts it.
"""

from .files import FORMAT, FORMAT_VERSION, PICKLED, check_storable, load, read, save
from .fitting import fit
from .model import ABSTAIN, Model, describe
from .predicting import Predicted, predict_file

__all__ = ["FORMAT", "FORMAT_VERSION", "PICKLED", "check_storable", "fit", "load", "read", "save"]
__all__ += ["ABSTAIN", "Model", "Predicted", "describe", "predict_file"]
