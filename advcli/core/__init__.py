"""The ground: knows nothing of learning; every room may use it, it uses none."""
