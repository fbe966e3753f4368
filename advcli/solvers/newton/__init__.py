"""The proximal point method with semismooth Newton steps, one file a kind of problem."""
