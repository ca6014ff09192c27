"""The two sizes of the recipes of the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ontogeny.observables import Observable
from ontogeny.training.run import RunSettings

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
        ConceptSize({RUN: _QUICK}, (0, 1, 2), observables(8, 600), texts=60, control_steps=4),
    )


def two_sizes(
    observables: Callable[[int, int], tuple[Observable, ...]],
) -> tuple[ConceptSize, ConceptSize]:
    """Return the full and the quick size of a recipe that compares a smaller with a larger model.

    One of the two is the model of the other recipes, which is trained once for all of them.
    """
    full, quick = sizes(observables)
    larger = replace(_FULL, settings=replace(_FULL.settings, layers=10, width=192))
    smaller = replace(_QUICK, settings=replace(_QUICK.settings, width=32))
    return (
        replace(full, runs={_shape(run): run for run in (_FULL, larger)}),
        replace(quick, runs={_shape(run): run for run in (smaller, _QUICK)}),
    )


def _shape(run: MaskedRun) -> str:
    return f"{run.settings.layers} layers of width {run.settings.width}"
