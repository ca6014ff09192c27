"""From projections and overlaps over steps to bands, learning order and rows of the chart."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.stats import spearmanr, t

from ontogeny.features.wordspace.order import first_crossing

from ...semantics.learned_order import learning_order

TOPS = (10, 20, 50)
ROWS_OF = "S"  # the matrix of the paper's claim, whose concepts stand in the chart
CONCEPT_ROWS = 10
FEWEST = 5  # learned concepts, below which nothing is said of their order


def prediction_width(draws: xr.DataArray) -> xr.DataArray:
    """Return the half width of the 95 % interval in which one more draw of the null would lie.

    Student's t with the draws' standard deviation; zero width where all draws agree.
    """
    n = draws.sizes["draw"]
    return t.ppf(0.975, n - 1) * draws.std("draw", ddof=1) * np.sqrt(1 + 1 / n)


def shuffled_band(
    data: xr.Dataset, name: str, lowest: float
) -> dict[str, xr.DataArray]:
    """Return the band of ``x_shuffled``, between `lowest` and 1, from the draws ``null_x``."""
    draws = data[f"null_{name}"]
    width = prediction_width(draws)
    middle = draws.mean("draw")
    return {
        f"{name}_shuffled_low": (middle - width).clip(lowest, 1),
        f"{name}_shuffled_high": (middle + width).clip(lowest, 1),
    }


def overlap_bands(data: xr.Dataset) -> xr.Dataset:
    """Add what shuffled next words and random directions give beside every overlap."""
    chance = data.k / (data.words.astype(float) - 1)
    return data.assign(shuffled_band(data, "overlap", 0)).assign(chance=chance)


def order_of_learning(data: xr.Dataset, random_state: int) -> xr.Dataset:
    """Add when each concept is learned, and how that goes with the singular values.

    ``learned_at(matrix, concept)``: step from which on the projection stays above half of its
    last value, NaN where its change does not exceed what concepts of shuffled corpora show.
    ``order(matrix, top)`` with ``order_p``, NaN where fewer than 5 concepts are learned, and
    ``order_low``, ``order_high`` (the shuffled corpora's own concepts);
    ``agreement(step, matrix)`` of projections and singular values.
    """
    steps = data.step.values
    concepts = data.sizes["concept"]
    change = _change(data.projection)
    null_change = _change(data.null_projection)
    noise = prediction_width(null_change)
    learned_at = _learned_at(steps, data.projection, change.where(change > noise))
    null_at = _learned_at(
        steps, data.null_projection, null_change.where(null_change > noise)
    )
    tops = [top for top in TOPS if top < concepts] + [concepts]
    orders = _orders(data.sigma, learned_at, tops, random_state)
    order = orders["order"].where(orders.learned >= FEWEST)
    # A shuffled corpus none of whose concepts is learned has no order: a correlation of 0.
    null = _orders(data.null_sigma, null_at, tops, random_state)["order"].fillna(0.0)
    low, high = (q.drop_vars("quantile") for q in null.quantile([0.025, 0.975], "draw"))
    last = data.projection.isel(step=_ends(data.projection)[1])
    data = data.assign(
        learned_at=learned_at,
        learned_share=data.projection / last.where(change > noise),
        agreement=_agreement(data.projection, data.sigma),
        null_agreement=_agreement(data.null_projection, data.null_sigma),
        order=order,
        order_p=orders["p_value"],
        learned=orders["learned"],
        order_low=low,
        order_high=high,
        sigma_share=data.sigma / data.sigma.max("concept"),
        order_all=order.sel(top=concepts, drop=True),
        order_all_low=low.sel(top=concepts, drop=True),
        order_all_high=high.sel(top=concepts, drop=True),
    )
    data = data.assign(shuffled_band(data, "agreement", -1))
    data.sigma.attrs.update(symbol="σₖ")
    data.sigma_share.attrs.update(symbol="σₖ/σ₁")
    return data


def followed(data: xr.Dataset) -> xr.Dataset:
    """Add what the chart follows, each with the change that shuffled corpora show as its floor.

    ``logits_overlap(direction)`` for every number of leading directions, and
    ``leading_projection(leading)`` on the first concepts, whose labels hold their words.
    """
    first = data.isel(concept=slice(CONCEPT_ROWS)).sel(matrix=ROWS_OF)
    names = [
        f"concept {c} · {w}"
        for c, w in zip(first.concept.values, first.label.values, strict=True)
    ]
    floor = prediction_width(_since_first(first.null_projection))
    data = _assigned(
        data, "leading_projection", first.projection, floor, "leading", names
    )
    if "logits" not in data["of"].values:
        return data
    logits = data.sel(of="logits", matrix=ROWS_OF)
    logits = logits.isel(k=np.flatnonzero(np.isfinite(logits.overlap).any("step")))
    names = [f"logits · overlap, k = {k}" for k in logits.k.values]
    floor = prediction_width(_since_first(logits.null_overlap))
    return _assigned(data, "logits_overlap", logits.overlap, floor, "direction", names)


def _assigned(
    data: xr.Dataset,
    name: str,
    values: xr.DataArray,
    floor: xr.DataArray,
    dim: str,
    labels: list[str],
) -> xr.Dataset:
    tables = {name: values, f"{name}_floor": floor}
    return data.assign_coords({dim: labels}).assign(
        {
            key: ((dim, "step"), table.transpose(..., "step").values)
            for key, table in tables.items()
        }
    )


def _ends(series: xr.DataArray) -> tuple[int, int]:
    """Return the positions of the first and the last step whose cells are there."""
    there = np.flatnonzero(
        series.notnull().any([d for d in series.dims if d != "step"]).values
    )
    return (int(there[0]), int(there[-1])) if len(there) else (0, -1)


def _change(series: xr.DataArray) -> xr.DataArray:
    first, last = _ends(series)
    return series.isel(step=last) - series.isel(step=first)


def _since_first(series: xr.DataArray) -> xr.DataArray:
    return series - series.isel(step=_ends(series)[0])


def _learned_at(
    steps: np.ndarray, series: xr.DataArray, change: xr.DataArray
) -> xr.DataArray:
    """Return from when on each series stays above half of its last value; NaN where `change` is."""
    ordered = series.transpose(..., "step")
    last = ordered.isel(step=_ends(ordered)[1])
    crossing = first_crossing(steps, ordered.values, last.values / 2, lasting=True)
    return last.copy(data=crossing).drop_vars("step").where(np.isfinite(change))


def _orders(
    sigma: xr.DataArray, learned_at: xr.DataArray, tops: list[int], random_state: int
) -> xr.Dataset:
    sigma = sigma.transpose(..., "concept")
    learned_at = learned_at.transpose(..., "concept")
    orders = np.empty((3, *sigma.shape[:-1], len(tops)))
    for index in np.ndindex(sigma.shape[:-1]):
        for i, top in enumerate(tops):
            order = learning_order(
                sigma.values[index][:top],
                learned_at.values[index][:top],
                n_draws=1999,
                random_state=random_state,
            )
            orders[(slice(None), *index, i)] = (
                order.spearman,
                order.p_value,
                order.learned,
            )
    dims = [*sigma.dims[:-1], "top"]
    coords = {d: sigma[d] for d in sigma.dims[:-1] if d in sigma.coords} | {"top": tops}
    names = ("order", "p_value", "learned")
    return xr.Dataset(
        {n: (dims, v) for n, v in zip(names, orders, strict=True)}, coords=coords
    )


def _agreement(series: xr.DataArray, sigma: xr.DataArray) -> xr.DataArray:
    """Return Spearman's correlation over concepts at every step; NaN where nothing varies."""
    series, sigma = xr.broadcast(series, sigma)
    series = series.transpose(..., "concept")
    sigma = sigma.transpose(..., "concept")
    correlation = np.full(series.shape[:-1], np.nan)
    for index in np.ndindex(correlation.shape):
        values = series.values[index]
        if (
            np.isfinite(values).all()
            and np.ptp(values) > 0
            and np.ptp(sigma.values[index]) > 0
        ):
            correlation[index] = spearmanr(values, sigma.values[index]).statistic
    return series.isel(concept=0, drop=True).copy(data=correlation)
