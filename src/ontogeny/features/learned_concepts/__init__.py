"""Observables of concepts that training made, beyond the current token."""

# The names that it gives to public modules, and which of its own modules defines each.
PUBLIC = {"observables": {"observed": ["LearnedConcepts"]}}
