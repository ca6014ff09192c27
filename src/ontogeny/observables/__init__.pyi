# Written by .ci/stubs.py.
# ruff: noqa
from typing import Any
from .base import Observable as Observable
from .catalogued import ModelFacts as ModelFacts
from .catalogued import PresetEntry as PresetEntry
from .own import OwnMeasure as OwnMeasure
from .own import observable as observable
from .readings import BlockReading as BlockReading
from .readings import Reading as Reading
from .readings import Run as Run
from .readings import SeriesReading as SeriesReading
from .registry import make as make
from .registry import make_own as make_own
from .registry import names as names
from .variables import by_layer as by_layer
from .variables import dataset as dataset
from ontogeny.features.abilities.answers import Answers as Answers
from ontogeny.features.abilities.choices import Choices as Choices
from ontogeny.features.abilities.harness import Harness as Harness
from ontogeny.features.abilities.minimal_pairs import MinimalPairs as MinimalPairs
from ontogeny.features.activations.decay import ActivationDecay as ActivationDecay
from ontogeny.features.activations.dimensions import EffectiveDimensions as EffectiveDimensions
from ontogeny.features.activations.similarity import Similarity as Similarity
from ontogeny.features.attention.entropy import AttentionEntropy as AttentionEntropy
from ontogeny.features.circuits.agreement import NgramAgreement as NgramAgreement
from ontogeny.features.circuits.calibration import Calibration as Calibration
from ontogeny.features.circuits.copying import CopyingHeads as CopyingHeads
from ontogeny.features.circuits.heads import AttentionHeads as AttentionHeads
from ontogeny.features.circuits.in_context import InContextLearning as InContextLearning
from ontogeny.features.circuits.lens import LogitLens as LogitLens
from ontogeny.features.concepts.dictionaries import Concepts as Concepts
from ontogeny.features.concepts.effects import ConceptEffects as ConceptEffects
from ontogeny.features.concepts.joint import JointConcepts as JointConcepts
from ontogeny.features.concepts.layers.observed import ConceptLayers as ConceptLayers
from ontogeny.features.concepts.vocabulary import VocabularyConcepts as VocabularyConcepts
from ontogeny.features.directions.dictionary import Dictionary as Dictionary
from ontogeny.features.directions.followed import Directions as Directions
from ontogeny.features.directions.on_abilities import DirectionEffects as DirectionEffects
from ontogeny.features.fine_tuning.concept_change import ConceptChange as ConceptChange
from ontogeny.features.fine_tuning.difference import TunedDifference as TunedDifference
from ontogeny.features.fine_tuning.weight_change import WeightChange as WeightChange
from ontogeny.features.labelled.accuracy import LabelAccuracy as LabelAccuracy
from ontogeny.features.learned_concepts.observed import LearnedConcepts as LearnedConcepts
from ontogeny.features.predictions.answers import Predictions as Predictions
from ontogeny.features.predictions.loss import Loss as Loss
from ontogeny.features.predictions.place_losses import PlaceLosses as PlaceLosses
from ontogeny.features.predictions.token_losses import TokenLosses as TokenLosses
from ontogeny.features.predictions.training_texts import TrainingTexts as TrainingTexts
from ontogeny.features.predictions.writing import Writing as Writing
from ontogeny.features.probes.probed import Probe as Probe
from ontogeny.features.weights.norms import WeightNorms as WeightNorms
from ontogeny.features.wordspace.text_statistics import TextStatistics as TextStatistics

__all__ = [
    "Observable",
    "Reading",
    "BlockReading",
    "SeriesReading",
    "Run",
    "by_layer",
    "dataset",
    "ModelFacts",
    "OwnMeasure",
    "PresetEntry",
    "make",
    "make_own",
    "names",
    "observable",
    "ActivationDecay",
    "Answers",
    "AttentionEntropy",
    "AttentionHeads",
    "Calibration",
    "Choices",
    "ConceptChange",
    "ConceptEffects",
    "ConceptLayers",
    "Concepts",
    "CopyingHeads",
    "Dictionary",
    "DirectionEffects",
    "Directions",
    "EffectiveDimensions",
    "Harness",
    "InContextLearning",
    "JointConcepts",
    "LabelAccuracy",
    "LearnedConcepts",
    "LogitLens",
    "Loss",
    "MinimalPairs",
    "NgramAgreement",
    "PlaceLosses",
    "Predictions",
    "Probe",
    "Similarity",
    "TextStatistics",
    "TokenLosses",
    "TrainingTexts",
    "TunedDifference",
    "VocabularyConcepts",
    "WeightChange",
    "WeightNorms",
    "Writing",
]

def __getattr__(name: str) -> Any: ...
