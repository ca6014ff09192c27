"""Concepts over the runs of a comparison: those of each run matched, or one dictionary over all."""

from .matches import found_by_runs
from .node import NODE
from .same_tokens import comparable
from .shared import concepts_of_runs, price_of_concepts
from .views import studies_of, views_here

__all__ = [
    "NODE",
    "comparable",
    "concepts_of_runs",
    "found_by_runs",
    "price_of_concepts",
    "studies_of",
    "views_here",
]
