"""What is known of labels: their order, confusion, noise, sequences, sets and hierarchies."""
