"""Means over seeds of each run, with the figures of their quantities."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import xarray as xr

from ontogeny.figures import Figure, Section
from ontogeny.quantities import Quantity, of_names
from ontogeny.summary.figures import figure_of_runs
from ontogeny.summary.summarise import summarise
from ontogeny.words.names import named


def mean_of_seeds(
    runs_of: Mapping[str, Sequence[xr.Dataset]],
    quantities: Sequence[Quantity],
    section: Section,
    *,
    figures: Sequence[Figure] = (),
    words: Callable[[xr.Dataset], Sequence[str]] = lambda _: (),
    role: str = "development",
) -> xr.Dataset:
    """Return the mean over seeds of each run with the figures of its quantities.

    Shades are mean ± SD, as the section says. Means make no rows: two or three seeds give no
    noise to judge a change by.

    Parameters
    ----------
    runs_of
        As in `over_seeds`.
    quantities, section, role
        As in `summarise`.
    figures
        Further figures, as they are drawn of a single run of one seed.
    words
        From the means to sentences.

    Examples
    --------
    >>> seeds = [xr.Dataset({"x": ("step", [1.0, y])}, {"step": [0, 1]}) for y in (2, 4)]
    >>> section = Section("Loss", "Mean loss.")
    >>> mean = mean_of_seeds({"one": seeds, "other": seeds}, [Quantity("x", "loss")], section)
    >>> mean.x.sel(run="one").values, dict(mean.x.attrs)
    (array([1., 3.]), {'long_name': 'loss', 'units': '1'})
    """
    data = named(over_seeds(runs_of), of_names(quantities))
    shade = f"Shade: mean ± SD over {int(np.max(data.seeds))} seeds."
    with_intervals = [_with_interval(figure, data) for figure in figures]
    if "run" in data.dims:
        with_intervals = [figure_of_runs(figure) for figure in with_intervals]
    return summarise(
        data,
        [dataclasses.replace(quantity, rows="", shade="") for quantity in quantities],
        dataclasses.replace(section, care=f"{section.care} {shade}".strip()),
        figures=lambda _: with_intervals,
        words=words,
        role=role,
    )


def _with_interval(figure: Figure, data: xr.Dataset) -> Figure:
    ends = f"{figure.value}_low", f"{figure.value}_high"
    if not hasattr(figure, "interval") or ends[0] not in data:
        return figure
    return dataclasses.replace(figure, interval=ends)  # type: ignore[call-arg]


def over_seeds(runs_of: Mapping[str, Sequence[xr.Dataset]]) -> xr.Dataset:
    """Return the mean over seeds of every variable, with ``_sd``, ``_low`` and ``_high``.

    Parameters
    ----------
    runs_of
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
    runs = {label: _of_run(seeds) for label, seeds in runs_of.items()}
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
