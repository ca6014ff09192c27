"""Observables of weights: norms and ranks of matrices."""

PUBLIC = {"observables": {"norms": ["WeightNorms"]}}
"""The names that it gives to public modules, and which of its own modules defines each."""
