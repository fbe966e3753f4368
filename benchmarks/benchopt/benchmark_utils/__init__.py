"""What the objective, the data sets and the solvers share."""
