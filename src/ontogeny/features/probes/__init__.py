"""Probes of token labels, beside control tasks."""

# The names that it gives to public modules, and which of its own modules defines each.
PUBLIC = {"observables": {"probed": ["Probe"]}}
