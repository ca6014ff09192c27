"""Observables of labelled concepts: their directions, and their influence."""

PUBLIC = {
    "concepts": {"cav": ["CAV"]},
    "dynamics": {"permutation": ["permutation_test"]},
    "observables": {"accuracy": ["LabelAccuracy"], "directions": ["ConceptDirections"]},
}
"""The names that it gives to public modules, and which of its own modules defines each."""
