"""What is left out of a page that would grow too large: steps first, evenly, with a notice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from .specs import FigureSpec, is_step

__all__ = ["BUDGET", "Kept", "thinning"]

BUDGET = 600_000
"""Numbers that a page may hold, about 6 MB."""

MIN_KEPT = 24
"""Thinning by steps stops here; then other dimensions are thinned, the longest first."""

Kept = dict[str, np.ndarray]


def thinning(specs: Sequence[FigureSpec], budget: int) -> dict[str, Kept]:
    """Return for every node the indices kept along the dimensions that must be thinned.

    Small nodes keep all; the large ones share what is left evenly.
    """
    needs: dict[str, dict[tuple[str, str], xr.DataArray]] = {}
    whole: dict[str, set[str]] = {}
    for spec in specs:
        if not spec.problem and spec.kind != "table":
            arrays = needs.setdefault(spec.node.id, {})
            arrays.update({spec.array_key(name): spec.array(name) for name in spec.variables})
            whole.setdefault(spec.node.id, set()).update(spec.whole)
    sizes = {node: sum(a.size for a in arrays.values()) for node, arrays in needs.items()}
    left, kept = budget, {}
    for i, (node, size) in enumerate(sorted(sizes.items(), key=lambda item: item[1])):
        share = min(size, left // (len(sizes) - i))
        left -= share
        lengths: dict[str, int] = {}
        for array in needs[node].values():
            lengths.update({str(d): n for d, n in array.sizes.items() if d not in whole[node]})
        kept[node] = _kept(lengths, share / size if size else 1.0)
    return kept


def _kept(lengths: Mapping[str, int], share: float) -> Kept:
    """Thin dimensions until `share` of the numbers is left: those over steps alike, then others."""
    kept: Kept = {}
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
