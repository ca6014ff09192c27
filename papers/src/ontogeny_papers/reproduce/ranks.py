"""Variance ranks of weights over seeds, beside their nulls: what several judges read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from .evidence import LEVEL, each, more_often

MORE = 0.5
"""Dimensions by which a rank counts as higher."""


def by_kind(node: xr.Dataset) -> xr.Dataset:
    """Return the numbers of weight matrices as means over those of one kind.

    Examples
    --------
    >>> blocks = ["layers.0.q_proj.weight", "layers.1.q_proj.weight"]
    >>> node = xr.Dataset({"variance_rank": ("block", [3.0, 5.0])}, {"block": blocks})
    >>> by_kind(node).variance_rank.to_series().to_dict()
    {'q_proj': 4.0}
    """
    kinds = [str(block).rsplit(".", 2)[-2] for block in node.block.values]
    blockwise = [name for name, values in node.data_vars.items() if "block" in values.dims]
    numbers = node[[name for name in blockwise if node[name].dtype.kind in "fiub"]]
    return numbers.astype(float).assign_coords(block=kinds).groupby("block").mean()


def below_random_order(runs: Sequence[xr.Dataset]) -> tuple[int, int, float]:
    """Return how many matrices have a lower rank than in random order, of how many, and p.

    The p-value is that of as many by chance (binomial; matrices of a run are not independent, so
    it is too small rather than too large).
    """
    p_lower = np.concatenate([run.p_lower.values for run in runs])
    count, tested = int((p_lower < LEVEL).sum()), int(np.isfinite(p_lower).sum())
    return count, tested, more_often(count, tested, LEVEL)[1]


def growing_null(run: xr.Dataset, null: str) -> xr.DataArray:
    """Return the middle of a null's ranks of the run so far."""
    low, high = (run[f"growing_{null}_{end}_by_kind"] for end in ("low", "high"))
    return (low + high) / 2


def null_middle(run: xr.Dataset, null: str) -> xr.DataArray:
    """Return the middle of a null's ranks of the whole run, of every matrix or kind."""
    return (run[f"{null}_low"] + run[f"{null}_high"]) / 2


def whole_ranks(runs: Sequence[xr.Dataset]) -> np.ndarray:
    """Return the rank of each seed's whole run, mean over its matrices."""
    return each(runs, lambda run: run.variance_rank.mean())


def span(runs: Sequence[xr.Dataset], null: str) -> str:
    """Return ``"1.7 to 3.0"``, where 95 % of a null's ranks lie, mean over matrices and seeds."""
    low, high = (np.mean([run[f"{null}_{end}"].mean() for run in runs]) for end in ("low", "high"))
    return f"{low:.1f} to {high:.1f}"
