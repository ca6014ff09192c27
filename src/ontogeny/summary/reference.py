"""Where the reference step is, at which distances to it are 0 by construction."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ..quantities import Quantity


def reference_index(data: xr.Dataset, relative_to: str = "reference") -> int | None:
    """Return the position along ``step`` that distances are taken to, or None where it is not."""
    if relative_to == "last":
        return data.sizes["step"] - 1
    wanted = data.attrs.get("reference_step") if relative_to else None
    found = np.flatnonzero(data.step.values == wanted)
    return int(found[0]) if len(found) else None


def at_reference(data: xr.Dataset, quantity: Quantity) -> xr.DataArray:
    """Return over ``step`` where the value is 0 by construction."""
    here = np.arange(data.sizes["step"]) == reference_index(data, quantity.relative_to)
    return xr.DataArray(here, dims="step", coords={"step": data.step})
