"""Dual coordinate ascent, one file a kind of rows: dense, rows in blocks, lists of classes, kernel."""
