"""What is left out of a page that would grow too large: steps first, evenly, with a notice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from ..figures.axes import is_step
from ..figures.drawable import Drawable
from .base import kind_of

BUDGET = 600_000
"""Numbers that a page may hold, about 6 MB."""

MIN_KEPT = 24
"""Thinning by steps stops here; then other dimensions are thinned, the longest first."""


def thinned(drawables: Sequence[Drawable], budget: int) -> list[Drawable]:
    """Return figures whose arrays hold no more than `budget` numbers together.

    Those of small nodes stay whole; those of large ones share what is left evenly. Tables and
    figures that cannot be drawn hold no arrays.
    """
    arrays: dict[str, dict[tuple[str, str], xr.DataArray]] = {}
    whole: dict[str, set[str]] = {}
    for each in drawables:
        if each.problem or each.table is not None:
            continue
        own = {each.array_key(name): each.array(name) for name in each.variables}
        arrays.setdefault(each.node.id, {}).update(own)
        whole.setdefault(each.node.id, set()).update(kind_of(each.figure).whole(each))
    sizes = {node: sum(a.size for a in own.values()) for node, own in arrays.items()}
    left, kept = budget, {}
    for i, (node, size) in enumerate(sorted(sizes.items(), key=lambda item: item[1])):
        share = min(size, left // (len(sizes) - i))
        left -= share
        lengths = {
            str(d): n
            for array in arrays[node].values()
            for d, n in array.sizes.items()
            if d not in whole[node]
        }
        kept[node] = _kept(lengths, share / size if size else 1.0)
    for each in drawables:
        if each.runs and "step" in kept.get(each.node.id, {}):
            read = np.isin(each.node.dataset["step"], each.runs.steps)  # no difference without
            steps = np.union1d(kept[each.node.id]["step"], np.flatnonzero(read))
            kept[each.node.id]["step"] = steps
    return [
        each if each.problem or each.table is not None else replace(each, kept=kept[each.node.id])
        for each in drawables
    ]


def _kept(lengths: Mapping[str, int], share: float) -> dict[str, np.ndarray]:
    """Thin dimensions until `share` of the numbers is left: those over steps alike, then others."""
    kept: dict[str, np.ndarray] = {}
    order = sorted(lengths, key=lambda d: (not is_step(d), -lengths[d]))
    over_steps = sum(map(is_step, lengths))
    for place, dimension in enumerate(order):
        if share >= 1:
            break
        length = lengths[dimension]
        alike = max(over_steps - place, 1)
        count = min(max(int(length * share ** (1 / alike)), MIN_KEPT), length)
        kept[dimension] = np.unique(np.linspace(0, length - 1, count).round().astype(int))
        share *= length / count
    return kept
