"""Observables of what a model predicts."""

# The names that it gives to public modules, and which of its own modules defines each.
PUBLIC = {
    "observables": {"answers": ["Predictions"], "loss": ["Loss"], "token_losses": ["TokenLosses"]}
}
