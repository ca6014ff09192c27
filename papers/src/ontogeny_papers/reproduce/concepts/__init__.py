"""Recipes for "On the learning capacity of LLM: a concept-oriented study" (Bernas 2025)."""

from __future__ import annotations

from ..recipe import Recipe
from . import (
    adamw,
    convex,
    correlations,
    dimension,
    dynamics,
    encoders,
    first_regime,
    labelled,
    larger,
    latents,
    lipschitz,
    plane,
    printed,
    rotating,
    shapes,
    signals,
    solutions,
    solvers,
    transforms,
)
from .concept_recipe import ConceptRecipe, ConceptSize
from .masked_run import MaskedRun

__all__ = ["RECIPES", "ConceptRecipe", "ConceptSize", "MaskedRun"]

_ALL: tuple[Recipe, ...] = (
    *dynamics.RECIPES,
    *signals.RECIPES,
    *rotating.RECIPES,
    *encoders.RECIPES,
    *labelled.RECIPES,
    *plane.RECIPES,
    *printed.RECIPES,
    *transforms.RECIPES,
    *larger.RECIPES,
    *correlations.RECIPES,
    *shapes.RECIPES,
    *first_regime.RECIPES,
    *latents.RECIPES,
    *lipschitz.RECIPES,
    *solvers.RECIPES,
    *solutions.RECIPES,
    *dimension.RECIPES,
    *adamw.RECIPES,
    *convex.RECIPES,
)
RECIPES = {recipe.name: recipe for recipe in _ALL}
"""The recipes by name."""
