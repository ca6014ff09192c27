"""What failed in a study, from its merged result: ``result.problems()``."""

from .problem import Problem
from .table import Problems

__all__ = ["Problem", "Problems"]
