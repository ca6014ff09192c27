"""What failed in a study, from its merged result: ``result.problems()``."""

from __future__ import annotations

from .advice import advice
from .problem import NO_CELL, Problem, Standing, of_node, standing_of
from .table import Problems, ProblemsAccessor, problems_of, steps_text

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
