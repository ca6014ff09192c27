"""What an observable reads of one checkpoint, as values that can be compared and merged.

Equal needs are read once. Needs with the same pass key share their forward passes, others get
passes of their own, so that adding an observable never changes another one's numbers.
A need says itself how it is read, in terms of its source: a model with an input set, the
`ModelSource` of `ontogeny.capture`. This module therefore imports no model code, and another
package adds a need by subclassing `Need`.
"""

from .activity import Activations, Attention, Readouts
from .base import Need, Source
from .derived import InputSet, Model, Series, Weights
from .predictions import Gradients, Losses, Predictor

__all__ = [
    "Activations",
    "Attention",
    "Gradients",
    "InputSet",
    "Losses",
    "Model",
    "Need",
    "Predictor",
    "Readouts",
    "Series",
    "Source",
    "Weights",
]
