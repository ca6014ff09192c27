"""Observables and pages of word geometry."""

from __future__ import annotations

from .learning import WordSemantics
from .statistics import TextStatistics
from .views.clouds import clusters_view, orthants_view, tree_view
from .views.maps import concepts_view, space_view
from .views.page import semantics_page
from .views.scores import coherence_view, lift_view
from .views.training import confusion_view, ufm_view

__all__ = [
    "TextStatistics",
    "WordSemantics",
    "clusters_view",
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
