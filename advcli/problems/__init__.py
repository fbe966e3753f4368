"""What is to be solved, and the referee: no solver is imported here."""
