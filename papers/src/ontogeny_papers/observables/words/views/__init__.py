"""Views of word geometry as nodes of a report: clouds, maps, scores, and training."""

from .clouds import clusters_view, orthants_view, tree_view
from .maps import concepts_view, space_view
from .page import semantics_page
from .scores import coherence_view, lift_view
from .training import confusion_view, ufm_view

__all__ = [
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
