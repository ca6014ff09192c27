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
from .cav import ConceptDirections as ConceptDirections
from .commutators import Commutators as Commutators
from .concepts import ConceptDistances as ConceptDistances
from .concepts import ConceptPlane as ConceptPlane
from .concepts import Concepts as Concepts
from .concepts import ConceptTracks as ConceptTracks
from .concepts import EncoderDynamics as EncoderDynamics
from .concepts import IntrinsicDimension as IntrinsicDimension
from .concepts import Lipschitz as Lipschitz
from .concepts import TransformDynamics as TransformDynamics
from .fits import Fits as Fits
from .learning import LearningDynamics as LearningDynamics
from .orientation import Orientation as Orientation
from .orientation import orientation_across_runs as orientation_across_runs
from .predictions import Loss as Loss
from .projection import Projection as Projection
from .readout import ReadoutAccuracy as ReadoutAccuracy
from .readout import SaeProbe as SaeProbe
from .regimes import Regimes as Regimes
from .registry import make as make
from .registry import names as names
from .semantics_learning import WordSemantics as WordSemantics
from .semantics_views import semantics_page as semantics_page
from .signals import Signals as Signals
from .tcav import TCAV as TCAV
from .weight_rank import WeightRank as WeightRank

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
