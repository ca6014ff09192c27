"""What every head gave at the first checkpoint: a null for what it gives later."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr


def at_first_step(
    data: xr.Dataset, name: str, over: Sequence[str]
) -> xr.DataArray | None:
    """Return a variable at the first step that holds it, with some dimensions as one, of draws.

    None where no step holds it, or there is one checkpoint alone.

    Examples
    --------
    >>> values = [[[float("nan")] * 2], [[2.0, 3.0]]]
    >>> data = xr.Dataset({"x": (("step", "layer", "head"), values)})
    >>> at_first_step(data, "x", ("layer", "head")).values.tolist()
    [2.0, 3.0]
    """
    if (
        name not in data
        or data.sizes.get("step", 0) < 2
        or "step" not in data[name].dims
    ):
        return None
    finite = data[name].dropna("step", how="all")
    if not finite.sizes["step"]:
        return None
    first = finite.isel(step=0, drop=True).stack(
        initial_head=list(over), create_index=False
    )
    heads = first.dropna("initial_head", how="all")
    return heads.drop_vars([dim for dim in over if dim in heads.coords])
