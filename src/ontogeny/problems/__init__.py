"""What failed in a study, from its merged result: ``result.problems()``."""

from __future__ import annotations

from .problem import Problem
from .table import Problems

__all__ = ["Problem", "Problems"]
