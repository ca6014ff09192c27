"""The two sizes of the recipes of the report."""

from __future__ import annotations

from collections.abc import Callable

from ...observables import Observable
from ...training.run import RunSettings
from .concept_recipe import ConceptSize
from .masked_run import MaskedRun

RUN = "EuroBERT"
"""Label of the run where nothing is compared."""
_FULL = MaskedRun(RunSettings(steps=960))
_QUICK = MaskedRun(RunSettings.quick(), checkpoints=25)


def sizes(
    observables: Callable[[int, int], tuple[Observable, ...]],
) -> tuple[ConceptSize, ConceptSize]:
    """Return the full and the quick size of a recipe.

    Parameters
    ----------
    observables
        From the number of concepts and of tokens to what is observed.
    """
    return (
        ConceptSize({RUN: _FULL}, (0, 1, 2, 3, 4), observables(20, 3000)),
        ConceptSize({RUN: _QUICK}, (0, 1), observables(8, 600), texts=60, control_steps=4),
    )
