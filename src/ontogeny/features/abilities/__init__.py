"""Observables of what a model can do: examples with a right answer, asked at every checkpoint."""

# The names that it gives to public modules, and which of its own modules defines each.
PUBLIC = {
    "observables": {
        "answers": ["Answers"],
        "choices": ["Choices"],
        "harness": ["Harness"],
        "minimal_pairs": ["MinimalPairs"],
    }
}
