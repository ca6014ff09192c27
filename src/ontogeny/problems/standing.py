"""How much of an observable was computed."""

from __future__ import annotations

from dataclasses import dataclass

import xarray as xr

from .found import statuses


@dataclass(frozen=True)
class Standing:
    """Numbers of an observable's cells.

    Parameters
    ----------
    cells
        How many it has: 0 where it follows from other nodes alone.
    failed
        How many are missing, or failed in at least one layer.
    finished
        How many hold something.
    lost
        Whether nothing of the observable was computed.
    """

    cells: int
    failed: int
    finished: int
    lost: bool


def standing_of(data: xr.Dataset) -> Standing:
    """Return how much of a node was computed.

    Examples
    --------
    >>> standing_of(xr.Dataset({"status": ("step", ["done", "failed: no"])}, {"step": [0, 8]}))
    Standing(cells=2, failed=1, finished=1, lost=False)
    """
    cells = [set(layers.values()) for layers in statuses(data).values()]
    failed = sum(each != {"done"} for each in cells)
    finished = sum("done" in each for each in cells)
    lost = not finished and (bool(cells) or "failed" in data.attrs)
    return Standing(len(cells), failed, finished, lost)
