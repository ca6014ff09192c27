"""Whether the last checkpoint's concepts can be read from earlier activations."""

PUBLIC = {
    "dynamics": {
        "encoding": ["encode", "match_codes"],
        "logits": ["compare_logits"],
    },
    "observables": {
        "observable": ["EncoderDynamics"],
    },
}
"""The names that it gives to public modules, and which of its own modules defines each."""
