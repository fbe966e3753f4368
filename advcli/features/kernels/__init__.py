"""Feature maps of kernels: the kernels, their principal components and thresholds."""
