"""What is read off one model: activations, attention, losses, and which weights they depend on."""

from .._exports import exported_names, exporter
from .blocks import match_blocks, weight_block
from .families import family_of
from .layer_readout import readout
from .layers import list_layers, match_layers
from .objectives import ReadingSettings
from .reading import ModelSource, modules_read, read
from .shortcuts import activations, attention_entropy, losses
from .trial.invariance import check_batch_invariance
from .vocabulary_map import written

__all__ = [
    "ModelSource",
    "ReadingSettings",
    "activations",
    "attention_entropy",
    "check_batch_invariance",
    "family_of",
    "list_layers",
    "losses",
    "match_blocks",
    "match_layers",
    "modules_read",
    "read",
    "readout",
    "weight_block",
    "written",
    *exported_names("capture"),
]

__getattr__ = exporter("capture")
