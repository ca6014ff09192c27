"""Where the reference step is, at which distances to it are 0 by construction."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ..quantities import Quantity

__all__ = ["at_reference", "reference_index"]


def reference_index(data: xr.Dataset) -> int | None:
    """Return the position of the reference step along ``step``, or None where it is not there."""
    found = np.flatnonzero(data.step.values == data.attrs.get("reference_step"))
    return int(found[0]) if len(found) else None


def at_reference(data: xr.Dataset, quantity: Quantity) -> xr.DataArray:
    """Return over ``step`` where the value is 0 by construction."""
    reference = data.attrs.get("reference_step") if quantity.relative_to else None
    return xr.DataArray(data.step.values == reference, dims="step", coords={"step": data.step})
