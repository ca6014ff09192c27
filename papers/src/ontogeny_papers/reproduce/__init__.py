"""One recipe for each figure and claim of the papers that this library rebuilds.

The family ``known-...`` trains what the literature knows to develop.

Examples
--------
>>> from ontogeny import reproduce
>>> reproduce.names()[0]
'concepts-figure-1'
>>> reproduce.recipe("execution-figure-1").source
'Xu 2026, sec. 4.1, Fig. 1'
"""

from __future__ import annotations

from . import concepts, execution, known, semantics
from .concepts import ConceptRecipe
from .known import KnownRecipe
from .marker_recipe import MarkerRecipe, Scale
from .recipe import Recipe
from .semantics import SemanticsRecipe
from .verdicts import Verdict

__all__ = [
    "ConceptRecipe",
    "KnownRecipe",
    "MarkerRecipe",
    "Recipe",
    "Scale",
    "SemanticsRecipe",
    "Verdict",
    "names",
    "recipe",
]


def names() -> tuple[str, ...]:
    """Return the names of all recipes.

    Examples
    --------
    >>> len(names()) >= 6
    True
    """
    return tuple(_every())


def recipe(name: str) -> Recipe:
    """Return a recipe; ``recipe(name).run(folder, quick=True)`` runs it.

    Raises
    ------
    ArgumentError
        If there is no such recipe.

    Examples
    --------
    >>> recipe("execution-curriculum").title
    'Mixed training against a curriculum'
    """
    from ontogeny.errors import check_choice

    every = _every()
    return every[check_choice("NAME", name, every)]


def _every() -> dict[str, Recipe]:
    return {
        **concepts.RECIPES,
        **execution.RECIPES,
        **semantics.RECIPES,
        **known.RECIPES,
    }
