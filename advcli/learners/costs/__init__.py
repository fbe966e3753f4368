"""Learners of costs that every row gives by itself, and the games that they solve."""
