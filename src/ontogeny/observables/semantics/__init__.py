"""Observables and pages of word geometry."""

from __future__ import annotations

from .learning import WordSemantics
from .views import (
    coherence_view,
    concepts_view,
    confusion_view,
    lift_view,
    orthants_view,
    semantics_page,
    space_view,
    tree_view,
    ufm_view,
)

__all__ = [
    "WordSemantics",
    "coherence_view",
    "concepts_view",
    "confusion_view",
    "lift_view",
    "orthants_view",
    "semantics_page",
    "space_view",
    "tree_view",
    "ufm_view",
]
