"""Mean and standard deviation over seeds of what studies of single seeds found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

__all__ = ["over_seeds"]


def over_seeds(found: Mapping[str, Sequence[xr.Dataset]]) -> xr.Dataset:
    """Return the mean over seeds of every variable, with ``_sd``, ``_low`` and ``_high``.

    Parameters
    ----------
    found
        By the label of a run: one dataset of numbers for each seed.

    Returns
    -------
    xarray.Dataset
        Each variable ``v`` as ``v`` (mean), ``v_sd`` (n − 1 in the denominator; NaN for a single
        seed), ``v_low`` and ``v_high`` (mean ± SD), along ``run`` where there are several runs,
        and ``seeds``. Labels that a run lacks hold NaN.

    Examples
    --------
    >>> data = over_seeds({"mixed": [xr.Dataset({"rank": 3.0}), xr.Dataset({"rank": 5.0})]})
    >>> float(data["rank"]), float(data["rank_sd"]), int(data["seeds"])
    (4.0, 1.4142135623730951, 2)
    """
    runs = {label: _of_run(each) for label, each in found.items()}
    if len(runs) == 1:
        return next(iter(runs.values()))
    pieces = [data.expand_dims(run=[label]) for label, data in runs.items()]
    return xr.concat(pieces, dim="run", join="outer", data_vars="all", coords="minimal")


def _of_run(seeds: Sequence[xr.Dataset]) -> xr.Dataset:
    stacked = xr.concat(list(seeds), dim="seed", join="outer", data_vars="all", coords="minimal")
    result: dict[str, xr.DataArray] = {}
    for name, values in stacked.data_vars.items():
        values = values.astype(np.float64)
        mean = values.mean("seed", skipna=False)
        several = stacked.sizes["seed"] > 1
        sd = values.std("seed", ddof=1, skipna=False) if several else mean * np.nan
        spread = sd.fillna(0.0)
        mean.attrs.update(values.attrs)
        result |= {
            str(name): mean,
            f"{name}_sd": sd,
            f"{name}_low": mean - spread,
            f"{name}_high": mean + spread,
        }
    return xr.Dataset(result).assign(seeds=stacked.sizes["seed"])
