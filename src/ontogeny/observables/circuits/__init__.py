"""Observables of circuits, and of the statistics and predictions that they make."""

from __future__ import annotations

from .agreement import NgramAgreement
from .calibration import Calibration, calibration_error
from .copying import CopyingHeads
from .heads import AttentionHeads
from .in_context import InContextLearning
from .lens import LogitLens
from .ngrams import NGrams
from .ov_circuit import check_has_ov_circuit, copying_score
from .scores import head_scores
from .sequences import random_sequences

__all__ = [
    "AttentionHeads",
    "Calibration",
    "CopyingHeads",
    "InContextLearning",
    "LogitLens",
    "NGrams",
    "NgramAgreement",
    "calibration_error",
    "check_has_ov_circuit",
    "copying_score",
    "head_scores",
    "random_sequences",
]
