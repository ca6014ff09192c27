"""How often a classifier gives the right label."""

# The names that it gives to public modules, and which of its own modules defines each.
PUBLIC = {"observables": {"accuracy": ["LabelAccuracy"]}}
