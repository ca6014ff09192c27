"""Observables and pages of word geometry."""

PUBLIC = {
    "observables": {"text_statistics": ["TextStatistics"]},
    "semantics": {
        "cloze": ["cloze_support"],
        "concepts": ["svd_concepts"],
        "corpus": ["token_stream", "word_stream"],
        "order": ["first_crossing"],
        "support": ["support_matrix"],
    },
}
"""The names that it gives to public modules, and which of its own modules defines each."""
