"""What is read off one model: activations, attention, losses, and which weights they depend on."""

from .blocks import WeightBlock, weight_block
from .context_logits import context_logits
from .cut_attention import cut_attention
from .directional import directional_derivatives
from .embeddings import (
    ContextEmbeddings,
    WordEmbeddings,
    context_embeddings,
    word_embeddings,
)
from .families import family_of
from .gradients import GradientReading, gradients, untouched
from .invariance import Invariance, check_batch_invariance
from .layers import match_layers
from .listing import LayerInfo, list_layers
from .objectives import loss_names
from .parameters import block_values, parameter_blocks
from .predictor import Predictor
from .random_concepts import tcav_against_random
from .reading import ModelSource, PassKey, modules_read, read, sources
from .readout import Readout, readout, readouts, why_no_readout, written
from .settings import ReadingSettings
from .shortcuts import activations, attention_entropy, losses
from .targets import Target
from .tcav import tcav
from .weights import match_blocks

__all__ = [
    "ContextEmbeddings",
    "GradientReading",
    "Invariance",
    "LayerInfo",
    "ModelSource",
    "PassKey",
    "Predictor",
    "ReadingSettings",
    "Readout",
    "Target",
    "WeightBlock",
    "WordEmbeddings",
    "activations",
    "attention_entropy",
    "block_values",
    "check_batch_invariance",
    "context_embeddings",
    "context_logits",
    "cut_attention",
    "directional_derivatives",
    "family_of",
    "gradients",
    "list_layers",
    "loss_names",
    "losses",
    "match_blocks",
    "match_layers",
    "modules_read",
    "parameter_blocks",
    "read",
    "readout",
    "readouts",
    "sources",
    "tcav",
    "tcav_against_random",
    "untouched",
    "weight_block",
    "why_no_readout",
    "word_embeddings",
    "written",
]
