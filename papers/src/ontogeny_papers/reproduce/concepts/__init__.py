"""Recipes for "On the learning capacity of LLM: a concept-oriented study" (Bernas 2025)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

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

_MODULES = (
    dynamics,
    signals,
    rotating,
    encoders,
    labelled,
    plane,
    printed,
    transforms,
    larger,
    correlations,
    shapes,
    first_regime,
    latents,
    lipschitz,
    solvers,
    solutions,
    dimension,
    adamw,
    convex,
)
_ALL: Iterator[Recipe] = chain.from_iterable(module.RECIPES for module in _MODULES)
RECIPES = {recipe.name: recipe for recipe in _ALL}
"""The recipes by name."""
