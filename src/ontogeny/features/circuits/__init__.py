"""Observables of circuits, and of the statistics and predictions that they make."""

# The names that it gives to public modules, and which of its own modules defines each.
PUBLIC = {
    "observables": {
        "agreement": ["NgramAgreement"],
        "calibration": ["Calibration"],
        "copying": ["CopyingHeads"],
        "heads": ["AttentionHeads"],
        "in_context": ["InContextLearning"],
        "lens": ["LogitLens"],
    }
}
