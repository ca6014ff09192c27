"""Directions that people bring: followed over checkpoints, read, removed and added."""

# The names that it gives to public modules, and which of its own modules defines each.
PUBLIC = {
    "observables": {
        "dictionary": ["Dictionary"],
        "followed": ["Directions"],
        "on_abilities": ["DirectionEffects"],
    }
}
