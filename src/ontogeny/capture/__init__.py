"""What is read off one model: activations, attention, losses, and which weights they depend on."""

from .invariance import Invariance, check_batch_invariance
from .layers import match_layers
from .listing import LayerInfo, list_layers
from .reading import ReadingSettings, read
from .reads import modules_read
from .shortcuts import activations, attention_entropy, losses
from .weights import match_blocks

__all__ = [
    "Invariance",
    "LayerInfo",
    "ReadingSettings",
    "activations",
    "attention_entropy",
    "check_batch_invariance",
    "list_layers",
    "losses",
    "match_blocks",
    "match_layers",
    "modules_read",
    "read",
]
