"""Recipes for "On the learning capacity of LLM: a concept-oriented study" (Bernas 2025)."""

from __future__ import annotations

from . import dynamics
from .concept_recipe import ConceptRecipe, ConceptSize
from .masked_run import MaskedRun

__all__ = ["RECIPES", "ConceptRecipe", "ConceptSize", "MaskedRun"]

_ALL: tuple[ConceptRecipe, ...] = (*dynamics.RECIPES,)
RECIPES = {recipe.name: recipe for recipe in _ALL}
"""The recipes by name."""
