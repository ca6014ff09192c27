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
    for view in drawables:
        if view.problem or view.table is not None:
            continue
        values = {view.array_key(name): view.array(name) for name in view.variables}
        arrays.setdefault(view.node.id, {}).update(values)
        whole.setdefault(view.node.id, set()).update(kind_of(view.figure).whole(view))
    sizes = {node: sum(a.size for a in values.values()) for node, values in arrays.items()}
    budget_left, places = budget, {}
    for i, (node, size) in enumerate(sorted(sizes.items(), key=lambda item: item[1])):
        share = min(size, budget_left // (len(sizes) - i))
        budget_left -= share
        lengths = {
            str(d): n
            for array in arrays[node].values()
            for d, n in array.sizes.items()
            if d not in whole[node]
        }
        places[node] = _indices(lengths, share / size if size else 1.0)
    for view in drawables:
        if view.runs and "step" in places.get(view.node.id, {}):
            read = np.isin(view.node.dataset["step"], view.runs.steps)  # no difference without
            steps = np.union1d(places[view.node.id]["step"], np.flatnonzero(read))
            places[view.node.id]["step"] = steps
    return [
        view
        if view.problem or view.table is not None
        else replace(view, places=places[view.node.id])
        for view in drawables
    ]


def _indices(lengths: Mapping[str, int], share: float) -> dict[str, np.ndarray]:
    """Thin dimensions until `share` of the numbers is left: those over steps alike, then others."""
    places: dict[str, np.ndarray] = {}
    order = sorted(lengths, key=lambda d: (not is_step(d), -lengths[d]))
    over_steps = sum(map(is_step, lengths))
    for place, dimension in enumerate(order):
        if share >= 1:
            break
        length = lengths[dimension]
        alike = max(over_steps - place, 1)
        count = min(max(int(length * share ** (1 / alike)), MIN_KEPT), length)
        places[dimension] = np.unique(np.linspace(0, length - 1, count).round().astype(int))
        share *= length / count
    return places
