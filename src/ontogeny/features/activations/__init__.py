"""Observables of activations as they are, without concepts."""

# The names that it gives to public modules, and which of its own modules defines each.
PUBLIC = {
    "distances": {"similarities": ["cka", "mutual_neighbours", "pwcca", "svcca"]},
    "observables": {
        "decay": ["ActivationDecay"],
        "dimensions": ["EffectiveDimensions"],
        "similarity": ["Similarity"],
    },
}
