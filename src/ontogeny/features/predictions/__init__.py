"""Observables of what a model predicts."""

# The names that it gives to public modules, and which of its own modules defines each.
PUBLIC = {
    "observables": {
        "answers": ["Predictions"],
        "loss": ["Loss"],
        "place_losses": ["PlaceLosses"],
        "token_losses": ["TokenLosses"],
        "training_texts": ["TrainingTexts"],
        "writing": ["Writing"],
    }
}
