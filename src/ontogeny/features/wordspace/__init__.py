"""Observables and pages of word geometry."""

# The names that it gives to public modules, and which of its own modules defines each.
PUBLIC = {
    "observables": {"text_statistics": ["TextStatistics"]},
    "semantics": {"concepts": ["svd_concepts"], "order": ["first_crossing"]},
}
