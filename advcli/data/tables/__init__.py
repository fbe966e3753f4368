"""From the cells of a table to features and labels: reading, columns, encoding, target."""
