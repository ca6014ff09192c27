"""What is read off one model: activations, attention, losses, and which weights they depend on."""

from .blocks import WeightBlock, weight_block
from .families import FAMILIES, Family, family_of
from .invariance import Invariance, check_batch_invariance
from .layers import match_attention, match_layers
from .listing import LayerInfo, list_layers
from .reading import ReadingSettings, read
from .reads import modules_read
from .shortcuts import activations, attention_entropy, losses
from .weights import match_blocks

__all__ = [
    "FAMILIES",
    "Family",
    "Invariance",
    "LayerInfo",
    "ReadingSettings",
    "WeightBlock",
    "activations",
    "attention_entropy",
    "check_batch_invariance",
    "family_of",
    "list_layers",
    "losses",
    "match_attention",
    "match_blocks",
    "match_layers",
    "modules_read",
    "read",
    "weight_block",
]
