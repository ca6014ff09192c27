"""Observables and pages of word geometry."""

from __future__ import annotations

from .learning import WordSemantics
from .statistics import TextStatistics
from .views.clouds import clusters_view as clusters_view
from .views.clouds import orthants_view as orthants_view
from .views.clouds import tree_view as tree_view
from .views.maps import concepts_view as concepts_view
from .views.maps import space_view as space_view
from .views.page import semantics_page
from .views.scores import coherence_view as coherence_view
from .views.scores import lift_view as lift_view
from .views.training import confusion_view as confusion_view
from .views.training import ufm_view as ufm_view

__all__ = ["TextStatistics", "WordSemantics", "semantics_page"]
