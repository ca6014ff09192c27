"""Observables and pages of word geometry."""

from __future__ import annotations

from .learning import WordSemantics as WordSemantics
from .views import coherence_view as coherence_view
from .views import concepts_view as concepts_view
from .views import confusion_view as confusion_view
from .views import lift_view as lift_view
from .views import orthants_view as orthants_view
from .views import semantics_page as semantics_page
from .views import space_view as space_view
from .views import tree_view as tree_view
from .views import ufm_view as ufm_view

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
