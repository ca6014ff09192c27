"""Frequencies of rows, and how many dimensions a feature has to itself."""
