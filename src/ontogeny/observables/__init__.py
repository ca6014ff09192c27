"""Observables: functions of one checkpoint, each with its nulls and its figures."""

from __future__ import annotations

from .activations import ActivationDecay as ActivationDecay
from .activations import ActivationPath as ActivationPath
from .activations import EffectiveDimensions as EffectiveDimensions
from .attention import AttentionEntropy as AttentionEntropy
from .attention import ReadoutAttention as ReadoutAttention
from .base import BlockReading as BlockReading
from .base import Observable as Observable
from .base import Reading as Reading
from .base import Run as Run
from .base import SeriesReading as SeriesReading
from .base import by_layer as by_layer
from .concepts import ConceptDistances as ConceptDistances
from .concepts import ConceptPlane as ConceptPlane
from .concepts import Concepts as Concepts
from .concepts import ConceptTracks as ConceptTracks
from .concepts import EncoderDynamics as EncoderDynamics
from .concepts import IntrinsicDimension as IntrinsicDimension
from .concepts import Lipschitz as Lipschitz
from .concepts import TransformDynamics as TransformDynamics
from .curves import Fits as Fits
from .curves import LearningDynamics as LearningDynamics
from .curves import Regimes as Regimes
from .curves import Signals as Signals
from .labelled import TCAV as TCAV
from .labelled import ConceptDirections as ConceptDirections
from .predictions import Loss as Loss
from .readout import ReadoutAccuracy as ReadoutAccuracy
from .readout import SaeProbe as SaeProbe
from .registry import make as make
from .registry import names as names
from .semantics import WordSemantics as WordSemantics
from .semantics import semantics_page as semantics_page
from .weights import Commutators as Commutators
from .weights import Orientation as Orientation
from .weights import Projection as Projection
from .weights import WeightRank as WeightRank
from .weights import orientation_across_runs as orientation_across_runs

__all__ = [
    "Observable",
    "Reading",
    "BlockReading",
    "SeriesReading",
    "Run",
    "by_layer",
    "ActivationDecay",
    "ActivationPath",
    "AttentionEntropy",
    "Commutators",
    "ConceptDirections",
    "ConceptDistances",
    "ConceptPlane",
    "ConceptTracks",
    "Concepts",
    "EncoderDynamics",
    "Lipschitz",
    "TransformDynamics",
    "EffectiveDimensions",
    "IntrinsicDimension",
    "Fits",
    "LearningDynamics",
    "Loss",
    "Regimes",
    "Signals",
    "ReadoutAccuracy",
    "ReadoutAttention",
    "SaeProbe",
    "Orientation",
    "Projection",
    "orientation_across_runs",
    "TCAV",
    "WeightRank",
    "WordSemantics",
    "semantics_page",
    "make",
    "names",
]
