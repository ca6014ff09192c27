"""One dictionary of concepts over the runs of a comparison."""

from .node import NODE
from .shared import concepts_of_runs, price_of_concepts
from .views import studies_of, views_here

__all__ = ["NODE", "concepts_of_runs", "price_of_concepts", "studies_of", "views_here"]
