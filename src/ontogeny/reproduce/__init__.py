"""One recipe for each figure and claim of the papers that this library rebuilds.

Examples
--------
>>> from ontogeny import reproduce
>>> reproduce.names()[0]
'execution-figure-1'
>>> reproduce.recipe("execution-figure-1").source
'Xu 2026, sec. 4.1, Fig. 1'
"""

from __future__ import annotations

from .execution import RECIPES
from .marker_recipe import MarkerRecipe, Scale

__all__ = ["MarkerRecipe", "Scale", "names", "recipe"]


def names() -> tuple[str, ...]:
    """Return the names of all recipes.

    Examples
    --------
    >>> len(names()) >= 6
    True
    """
    return tuple(RECIPES)


def recipe(name: str) -> MarkerRecipe:
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
    from ..errors import check_choice

    return RECIPES[check_choice("NAME", name, RECIPES)]
