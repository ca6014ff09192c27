"""Recipes on what is known to develop: trained here, judged against the literature."""

from __future__ import annotations

from ..trained_recipe import TrainedRecipe
from . import curriculum, grokking, induction, superposition, text
from .known_recipe import KnownRecipe, KnownRun, KnownSize

__all__ = ["RECIPES", "KnownRecipe", "KnownRun", "KnownSize"]

_ALL: tuple[TrainedRecipe, ...] = (
    induction.RECIPE,
    grokking.RECIPE,
    text.RECIPE,
    superposition.RECIPE,
    curriculum.RECIPE,
)
RECIPES = {recipe.name: recipe for recipe in _ALL}
"""The recipes by name."""
