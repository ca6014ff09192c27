"""Observables of concepts: fitted at every step, and followed through training."""

# The names that it gives to public modules, and which of its own modules defines each.
PUBLIC = {
    "describe": {
        "describe.contexts": ["contexts"],
        "describe.enrichment": ["enrichment"],
        "describe.names": ["names"],
        "describe.neighbours": ["neighbours"],
        "describe.rows": ["concentration", "orientation"],
        "describe.tokens": ["strongest_tokens"],
    },
    "observables": {
        "dictionaries": ["Concepts"],
        "effects": ["ConceptEffects"],
        "joint": ["JointConcepts"],
        "layers.observed": ["ConceptLayers"],
        "vocabulary": ["VocabularyConcepts"],
    },
}
