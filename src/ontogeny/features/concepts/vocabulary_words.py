"""Sentences on directions of the vocabulary."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import xarray as xr

from ...figures.characters import shown
from .joint_lives import SET_ASIDE
from .joint_lives import sentences as of_lives

NAMED = 4  # newborn concepts, of each matrix
TOKENS = 3  # of each of them


def sentences(data: xr.Dataset) -> list[str]:
    """Return what is said of each matrix: concepts, births with their tokens, nulls, frequency."""
    lines = list(_of_ties(data))
    if "n_concepts" not in data:
        return lines
    for block, life in zip(data.block.values, of_lives(data.rename(block="layer")), strict=True):
        lines += [life, *_of_block(str(block), data.sel(block=block))]
    return lines


def _of_ties(data: xr.Dataset) -> Iterator[str]:
    for other, one in json.loads(data.attrs.get("tied", "{}")).items():
        yield f"{other} is the same matrix as {one}, and is counted once."


def _of_block(block: str, one: xr.Dataset) -> Iterator[str]:
    born = np.flatnonzero(np.isfinite(one.concept_born.values))
    if len(born):
        strongest = born[np.argsort(-one.strength.max("step").values[born])][:NAMED]
        early = strongest[np.argsort(one.concept_born.values[strongest], kind="stable")]
        listed = "; ".join(
            f"step {one.concept_born.values[j]:.0f}: {_tokens(one, j)}" for j in early
        )
        yield f"The strongest that were born in {block}, with their first tokens: {listed}."
    concepts = np.flatnonzero(~one.concept_kind.isin(SET_ASIDE).values)
    if len(concepts):
        follows = np.abs(one.frequency.values[concepts])
        j = concepts[follows.argmax()]
        yield (
            f"The concept of {block} that follows the frequency of tokens most correlates with its "
            f"logarithm by {one.frequency.values[j]:.2f}; the median concept, by "
            f"{np.median(follows):.2f}."
        )
    if "null_concepts" in one and np.isfinite(one.null_concepts.values).all():
        by_null = "; ".join(
            f"{name}, {one.null_concepts.sel(null=name).item():.3g} and "
            f"{one.null_born.sel(null=name).item():.3g}"
            for name in one["null"].values
        )
        yield f"Of chance alone, so many latents pass for concepts, and for born: {by_null}."
        if one.n_concepts.item() <= one.null_concepts.max().item():
            yield f"So {block} has no more concepts than chance gives."


def _tokens(one: xr.Dataset, j: int) -> str:
    ids = one.token_id.values[j][:TOKENS].tolist()
    texts = dict(zip(one["piece"].values.tolist(), one["piece_text"].values.tolist(), strict=True))
    return ", ".join(f"“{shown(str(texts.get(i, i)))}”" for i in ids)
