"""Observables: functions of one checkpoint, each with its nulls and its figures."""

from __future__ import annotations

from .activation_decay import ActivationDecay as ActivationDecay
from .attention_entropy import AttentionEntropy as AttentionEntropy
from .base import BlockReading as BlockReading
from .base import Observable as Observable
from .base import Reading as Reading
from .base import Run as Run
from .base import SeriesReading as SeriesReading
from .base import by_layer as by_layer
from .concept_distances import ConceptDistances as ConceptDistances
from .concepts import Concepts as Concepts
from .loss import Loss as Loss
from .registry import make as make
from .registry import names as names
from .weight_rank import WeightRank as WeightRank

__all__ = [
    "Observable",
    "Reading",
    "BlockReading",
    "SeriesReading",
    "Run",
    "by_layer",
    "ActivationDecay",
    "AttentionEntropy",
    "ConceptDistances",
    "Concepts",
    "Loss",
    "WeightRank",
    "make",
    "names",
]
