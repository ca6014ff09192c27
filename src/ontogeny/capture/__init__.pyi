# Written by .ci/stubs.py.
# ruff: noqa
from typing import Any
from .blocks import match_blocks as match_blocks
from .blocks import weight_block as weight_block
from .families import family_of as family_of
from .layer_readout import readout as readout
from .layers import list_layers as list_layers
from .layers import match_layers as match_layers
from .objectives import ReadingSettings as ReadingSettings
from .reading import ModelSource as ModelSource
from .reading import modules_read as modules_read
from .reading import read as read
from .shortcuts import activations as activations
from .shortcuts import attention_entropy as attention_entropy
from .shortcuts import losses as losses
from .trial.invariance import check_batch_invariance as check_batch_invariance
from .vocabulary_map import written as written

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
]

def __getattr__(name: str) -> Any: ...
