# Included by the modules whose arrays are padded: Python asks each for its own width, since modules are built for different instruction sets.


def width(int k):
    """Return kp: the number of columns that arrays over k classes, states, labels or nodes have at this instruction set."""
    return checked_width(k)
