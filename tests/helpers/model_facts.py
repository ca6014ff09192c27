"""What is known of a model without anything special about it."""

from typing import Any

from ontogeny.observables import ModelFacts


def plain_facts(**known: Any) -> ModelFacts:
    """Return the facts of a small causal model, in which some may be given."""
    plain: dict[str, Any] = {
        "model_class": "Chain",
        "family": "",
        "parameters": 100,
        "layers": ("0", "1"),
        "every_layer": "*",
        "width": 32,
        "objective": "causal",
        "named": True,
        "no_prediction": "",
        "no_maps": "",
        "blocks": (),
        "embedded": False,
        "longest": None,
    }
    return ModelFacts(**{**plain, **known})
