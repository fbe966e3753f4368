"""The check of rows against a baseline."""
