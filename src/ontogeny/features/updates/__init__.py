"""What a step of an optimiser does: gradients of any loss, and whether two steps commute."""

PUBLIC = {
    "observables": {
        "observable": ["Commutators"],
    },
    "updates": {
        "commutators": ["commutator", "commutators"],
        "field": ["GradientField"],
        "pairs": ["pair_statistics"],
    },
}
"""The names that it gives to public modules, and which of its own modules defines each."""
