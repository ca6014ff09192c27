"""A recipe that one function measures, with no runs to share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .recipe import Findings, Materials, Recipe
from .verdicts import Verdict


@dataclass(frozen=True, kw_only=True)
class MeasuredRecipe(Recipe):
    """A reproduction whose numbers come from one function.

    Parameters
    ----------
    measure
        From a size, a dataclass of numbers, and materials to what is found.
    judge
        From the `numbers` of what is found to its verdicts; None where it needs more than numbers.
    """

    measure: Callable[[Any, Materials], Findings]
    judge: Callable[..., Sequence[Verdict]] | None = None

    def measured(self, size: Any, materials: Materials) -> Findings:
        """Call `measure`."""
        return self.measure(size, materials)
