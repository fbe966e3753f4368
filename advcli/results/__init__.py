"""A results folder: one file per finished cell; tables are made of them."""
