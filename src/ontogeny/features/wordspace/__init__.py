"""Observables and pages of word geometry."""

PUBLIC = {
    "observables": {"text_statistics": ["TextStatistics"]},
    "semantics": {
        "cloze": ["cloze_support"],
        "contexts": ["shuffled_next_words"],
        "concepts": ["svd_concepts"],
        "corpus": ["token_stream", "word_stream"],
        "order": ["first_crossing"],
        "orthant": ["orthants"],
        "support": ["support_matrix"],
        "support_file": ["load_support", "save_support"],
    },
}
"""The names that it gives to public modules, and which of its own modules defines each."""
