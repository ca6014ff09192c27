"""Observables of labelled concepts: their directions, and their influence."""

PUBLIC = {
    "capture": {"derivatives": ["tcav"], "random_concepts": ["tcav_against_random"]},
    "concepts": {"cav": ["CAV"]},
    "dynamics": {
        "permutation": ["permutation_test"],
        "regime_table": ["compare_regimes", "regime_table"],
    },
    "observables": {
        "accuracy": ["LabelAccuracy"],
        "directions": ["ConceptDirections"],
        "tcav": ["TCAV"],
    },
}
"""The names that it gives to public modules, and which of its own modules defines each."""
