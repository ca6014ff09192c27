"""Observables of what a model predicts."""

PUBLIC = {
    "observables": {"answers": ["Predictions"], "loss": ["Loss"], "token_losses": ["TokenLosses"]}
}
"""The names that it gives to public modules, and which of its own modules defines each."""
