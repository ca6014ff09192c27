"""What failed in a study, from its merged result: ``result.problems()``."""

from __future__ import annotations

from .accessor import ProblemsAccessor
from .advice import advice
from .found import NO_CELL, Problem, of_node
from .standing import Standing, standing_of
from .table import Problems, problems_of, steps_text

__all__ = [
    "NO_CELL",
    "Problem",
    "Problems",
    "ProblemsAccessor",
    "Standing",
    "advice",
    "of_node",
    "problems_of",
    "standing_of",
    "steps_text",
]
