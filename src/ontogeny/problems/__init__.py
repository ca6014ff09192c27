"""What failed in a study, from its merged result: ``result.problems()``."""

from __future__ import annotations

from .accessor import ProblemsAccessor
from .found import NO_CELL, Problem, of_node
from .standing import Standing, standing_of
from .table import Problems, problems_of

__all__ = [
    "NO_CELL",
    "Problem",
    "Problems",
    "ProblemsAccessor",
    "Standing",
    "of_node",
    "problems_of",
    "standing_of",
]
