"""What a corpus or a model holds of semantics, as nodes that the report draws.

Each function returns a dataset with its figures attached; :func:`semantics_page` puts them into one
tree, which :func:`ontogeny.report.write` turns into a page.
"""

from __future__ import annotations

from .clouds import orthants_view, tree_view
from .maps import concepts_view, space_view
from .page import semantics_page
from .scores import coherence_view, lift_view
from .training import confusion_view, ufm_view

__all__ = [
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
