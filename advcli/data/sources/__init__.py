"""Sources of data sets, one module each; a module that defines ``SOURCE`` is found by the registry."""
