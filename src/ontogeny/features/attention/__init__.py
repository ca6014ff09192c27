"""Observables of attention maps."""

# The names that it gives to public modules, and which of its own modules defines each.
PUBLIC = {"observables": {"entropy": ["AttentionEntropy"]}}
