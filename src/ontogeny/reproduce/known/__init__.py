"""Recipes on what is known to develop: trained here, judged against the literature."""

from __future__ import annotations

from . import grokking, induction
from .known_recipe import KnownRecipe, KnownRun, KnownSize

__all__ = ["RECIPES", "KnownRecipe", "KnownRun", "KnownSize"]

RECIPES = {recipe.name: recipe for recipe in (induction.RECIPE, grokking.RECIPE)}
"""The recipes by name."""
