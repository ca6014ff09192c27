"""A recipe that one function measures, with no runs to share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .recipe import Findings, Materials, Recipe


@dataclass(frozen=True, kw_only=True)
class MeasuredRecipe(Recipe):
    """A reproduction whose numbers come from one function.

    Parameters
    ----------
    measure
        From a size, a dataclass of numbers, and materials to what is found.
    """

    measure: Callable[[Any, Materials], Findings]

    def measured(self, size: Any, materials: Materials) -> Findings:
        """Call `measure`."""
        return self.measure(size, materials)
