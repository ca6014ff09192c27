"""Observables of concepts: fitted at every step, and followed through training."""

from __future__ import annotations

from .dictionaries import Concepts as Concepts
from .dimension import IntrinsicDimension as IntrinsicDimension
from .distances import ConceptDistances as ConceptDistances
from .encoder import EncoderDynamics as EncoderDynamics
from .lipschitz import Lipschitz as Lipschitz
from .plane import ConceptPlane as ConceptPlane
from .tracks import ConceptTracks as ConceptTracks
from .transforms import TransformDynamics as TransformDynamics

__all__ = [
    "ConceptDistances",
    "ConceptPlane",
    "ConceptTracks",
    "Concepts",
    "EncoderDynamics",
    "IntrinsicDimension",
    "Lipschitz",
    "TransformDynamics",
]
