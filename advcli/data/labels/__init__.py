"""What is known of labels: their codes, order, confusion, noise, sequences, sets and hierarchies."""
