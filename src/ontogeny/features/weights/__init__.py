"""Observables of weights: norms of matrices."""

# The names that it gives to public modules, and which of its own modules defines each.
PUBLIC = {"observables": {"norms": ["WeightNorms"]}}
