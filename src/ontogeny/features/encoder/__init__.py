"""Whether the last checkpoint's concepts can be read from earlier activations."""

PUBLIC = {
    "dynamics": {
        "code_matching": ["match_codes"],
        "encoding": ["encode"],
        "logits": ["compare_logits"],
    },
    "observables": {
        "observable": ["EncoderDynamics"],
    },
}
"""The names that it gives to public modules, and which of its own modules defines each."""
