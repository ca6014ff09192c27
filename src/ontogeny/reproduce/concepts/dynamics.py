"""Figures 1 to 5 of the report: how concepts approach those of the last checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

from ...observables import Concepts
from ..evidence import Found
from ..verdicts import Verdict
from .concept_recipe import ConceptRecipe
from .sizes import sizes


def judge(found: Found) -> Sequence[Verdict]:
    """Judge."""
    return [Verdict("placeholder", None, "nothing", "nothing")]


_ICA = ConceptRecipe(
    "concepts-figure-2",
    "ICA concepts on their way to the last checkpoint",
    "distances.",
    "Bernas 2025, sec. 5.1, Fig. 2",
    *sizes(lambda n, m: (Concepts("ica", n, max_tokens=m),)),
    judge=judge,
)

RECIPES = (_ICA,)
