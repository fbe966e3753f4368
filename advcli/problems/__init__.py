"""The problems, and the referee: no solver is imported here."""
