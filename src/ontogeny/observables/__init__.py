"""Observables: functions of one checkpoint, each with its nulls and its figures."""

from __future__ import annotations

from .activations import (
    ActivationDecay,
    ActivationPath,
    EffectiveDimensions,
    LayerSimilarity,
    Similarity,
    StepSimilarity,
)
from .attention import AttentionEntropy, ReadoutAttention
from .base import BlockReading, Observable, Reading, Run, SeriesReading, by_layer, dataset
from .circuits import (
    AttentionHeads,
    Calibration,
    CopyingHeads,
    InContextLearning,
    LogitLens,
    NgramAgreement,
)
from .concepts import (
    ConceptDistances,
    ConceptEffects,
    ConceptPlane,
    Concepts,
    ConceptTracks,
    EncoderDynamics,
    IntrinsicDimension,
    JointConcepts,
    Lipschitz,
    TransformDynamics,
)
from .curves import Fits, LearningDynamics, Regimes, Signals
from .labelled import TCAV, ConceptDirections
from .predictions import Loss, Predictions, TokenLosses
from .readout import ReadoutAccuracy, SaeProbe
from .registry import make, make_own, names
from .semantics import TextStatistics, WordSemantics, semantics_page
from .weights import (
    Commutators,
    EmbeddingFrequencies,
    FeatureGeometry,
    Orientation,
    Projection,
    VocabularyConcepts,
    WeightNorms,
    WeightRank,
    orientation_across_runs,
)

__all__ = [
    "Observable",
    "Reading",
    "BlockReading",
    "SeriesReading",
    "Run",
    "by_layer",
    "dataset",
    "ActivationDecay",
    "ActivationPath",
    "AttentionEntropy",
    "AttentionHeads",
    "Calibration",
    "CopyingHeads",
    "InContextLearning",
    "LogitLens",
    "NgramAgreement",
    "Commutators",
    "EmbeddingFrequencies",
    "FeatureGeometry",
    "ConceptDirections",
    "ConceptDistances",
    "ConceptEffects",
    "ConceptPlane",
    "ConceptTracks",
    "Concepts",
    "EncoderDynamics",
    "Lipschitz",
    "TransformDynamics",
    "EffectiveDimensions",
    "IntrinsicDimension",
    "JointConcepts",
    "Fits",
    "LearningDynamics",
    "Loss",
    "Predictions",
    "TokenLosses",
    "Regimes",
    "Signals",
    "LayerSimilarity",
    "Similarity",
    "StepSimilarity",
    "ReadoutAccuracy",
    "ReadoutAttention",
    "SaeProbe",
    "Orientation",
    "Projection",
    "orientation_across_runs",
    "TCAV",
    "VocabularyConcepts",
    "WeightNorms",
    "WeightRank",
    "TextStatistics",
    "WordSemantics",
    "semantics_page",
    "make",
    "make_own",
    "names",
]
