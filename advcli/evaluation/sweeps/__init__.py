"""Many cells: their list, their effort, and how they are run."""
