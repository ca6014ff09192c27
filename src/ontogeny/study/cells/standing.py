"""What stands of a weight matrix's cell when a run has other checkpoints: only new ones are read.

Some observables compare each checkpoint of a matrix with the first one alone (`from_first`). Then
a further checkpoint changes none of what was found at the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from ...errors import StoreError
from ...store import difference, plain
from .cache import read_verified
from .environment import environment, environment_of


def standing(
    path: Path, fingerprint: Mapping[str, Any], device: str
) -> xr.Dataset | None:
    """Return the steps of a stored cell that are still what they were; None if there are none.

    Its first step and all else that it follows from have to be the same, and so has what computes
    numbers here: rows of one curve do not come from two machines.
    """
    if not path.is_file():
        return None
    try:
        cell = read_verified(path)
    except StoreError:  # it is damaged, which is said where it is checked
        return None
    now = plain(fingerprint)
    before = dict(cell.fingerprint)
    weights = now.pop("weights")
    old = before.pop("weights", {})
    here = environment_of(cell.provenance) == environment(device)
    if cell.status != "done" or not here or difference(before, now):
        return None
    # A step that failed is tried again, with those that it may have failed for.
    if "step" not in cell.data.coords or "status" in cell.data:
        return None
    kept = [s for s in cell.data.step.values if old.get(str(s)) == weights.get(str(s))]
    firsts = {str(cell.data.step.values[0]), next(iter(weights))}
    return cell.data.sel(step=kept) if {*map(str, kept[:1])} == firsts else None


def left(kept: xr.Dataset, steps: Sequence[int]) -> list[int]:
    """Return the steps that are to be read: the first one and those that do not stand."""
    new = [step for step in steps if step not in kept.step.values]
    return [steps[0], *new] if new else []


def joined(kept: xr.Dataset, found: xr.Dataset, steps: Sequence[int]) -> xr.Dataset:
    """Return what stands and what was found at the first and the new steps, in their order.

    Examples
    --------
    >>> kept = xr.Dataset({"moved": ("step", [0.0, 1.0])}, {"step": [0, 10]})
    >>> found = xr.Dataset({"moved": ("step", [0.0, 0.5])}, {"step": [0, 5]})
    >>> joined(kept, found, [0, 5, 10]).moved.values.tolist()
    [0.0, 0.5, 1.0]
    """
    over_steps = [n for n, values in found.data_vars.items() if "step" in values.dims]
    new = found[over_steps].sel(step=[s for s in steps if s not in kept.step.values])
    rows = xr.concat([kept[over_steps], new], dim="step").sel(step=[*steps])
    return found.drop_dims("step").assign(rows.data_vars)[[*found.data_vars]]
