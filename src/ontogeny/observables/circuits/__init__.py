"""Observables of circuits, and of the statistics and predictions that they make."""

from __future__ import annotations

from .agreement import NgramAgreement
from .calibration import Calibration
from .calibration import calibration_error as calibration_error
from .copying import CopyingHeads
from .heads import AttentionHeads
from .in_context import InContextLearning
from .lens import LogitLens
from .ngrams import NGrams as NGrams
from .ov_circuit import check_has_ov_circuit as check_has_ov_circuit
from .ov_circuit import copying_score as copying_score
from .scores import head_scores as head_scores
from .sequences import random_sequences as random_sequences

__all__ = [
    "AttentionHeads",
    "Calibration",
    "CopyingHeads",
    "InContextLearning",
    "LogitLens",
    "NgramAgreement",
]
