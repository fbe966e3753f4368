"""The name that feature maps and selection share for the hyper-parameter that every method has."""

STRENGTH = "regularisation"  # the axis that C and lambda = 1/(n C) are two views of
