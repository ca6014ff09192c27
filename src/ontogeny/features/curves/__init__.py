"""Observables of the curves that other observables found."""

PUBLIC = {
    "dynamics": {
        "progress": ["learning_progress"],
        "recurrence": ["recurrence"],
    },
    "observables": {
        "learning": ["LearningDynamics"],
    },
}
"""The names that it gives to public modules, and which of its own modules defines each."""
