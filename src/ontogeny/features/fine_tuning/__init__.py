"""What a further training changed in the weights of a model that existed before."""

# The names that it gives to public modules, and which of its own modules defines each.
PUBLIC = {
    "geometry": {"increments": ["intruder_dimensions", "share_in_leading"]},
    "observables": {
        "concept_change": ["ConceptChange"],
        "difference": ["TunedDifference"],
        "weight_change": ["WeightChange"],
    },
}
