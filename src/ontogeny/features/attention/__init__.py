"""Observables of attention maps."""

PUBLIC = {"observables": {"entropy": ["AttentionEntropy"]}}
"""The names that it gives to public modules, and which of its own modules defines each."""
