"""Data with known structure that the papers train on: markers, organisms, imbalanced digits."""

from .digits import ImbalancedDigits, imbalanced_digits
from .marker_stream import MarkerStream
from .markers import MarkerBatch, MarkerTask
from .organisms import OrganismWorld, organism_world

__all__ = [
    "ImbalancedDigits",
    "MarkerBatch",
    "MarkerStream",
    "MarkerTask",
    "OrganismWorld",
    "imbalanced_digits",
    "organism_world",
]
