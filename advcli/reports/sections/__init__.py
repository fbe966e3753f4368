"""The sections of a report, each made from rows."""
