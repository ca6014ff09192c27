"""Observables of concepts: fitted at every step, and followed through training."""

from __future__ import annotations

from .dictionaries import Concepts
from .dimension import IntrinsicDimension
from .distances import ConceptDistances
from .effects import ConceptEffects
from .encoder import EncoderDynamics
from .joint import JointConcepts
from .lipschitz import Lipschitz
from .plane import ConceptPlane
from .tracks import ConceptTracks
from .transforms import TransformDynamics
from .vocabulary import VocabularyConcepts

__all__ = [
    "ConceptDistances",
    "ConceptEffects",
    "ConceptPlane",
    "ConceptTracks",
    "Concepts",
    "EncoderDynamics",
    "IntrinsicDimension",
    "JointConcepts",
    "Lipschitz",
    "TransformDynamics",
    "VocabularyConcepts",
]
