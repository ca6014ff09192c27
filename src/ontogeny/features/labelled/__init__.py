"""How often a classifier gives the right label."""

PUBLIC = {"observables": {"accuracy": ["LabelAccuracy"]}}
"""The names that it gives to public modules, and which of its own modules defines each."""
