"""Control runs beside a run: what they give for every quantity and every row of its chart.

A control moves as the run does and learns nothing. Its values stand beside those of the run as a
null along ``run``. Two numbers of a row are compared with it: the change from the first to the last
step, and the half-change step, both at the steps that the control was read at.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from ..control_kinds import MOTION, NO_NULLS, kind_of
from ..dynamics import half_change_step
from ..figures import Band, Curves, Figure, NullComparison
from ..quantities import CONTROL, Quantity
from ..tails import t_above
from .noise import band_of_draws

LABEL = "control runs"
RUN = "run"
# Dimensions whose labels mean something else in every run: runs are not compared along them.
NUMBERED = (
    "concept",
    "line",
    "orthant",
    "cluster",
    "component",
    "direction",
    "rank",
    "newborn",
)

# Most degrees of freedom that a row takes over from the others of its quantity.
BORROWED = 2
_POOLED = 0.1
_COUNTED = 4
"""How far rows that move apart pool degrees of freedom, and how many tests each counts as.

Layers differ in spread, and a run moves all of them: `_apart` is 0 of layers that move as one and
is known from few runs only. With these two, one more of three control runs is beyond on at most 5 %
of pages, whatever the layers have in common (guide on nulls).
"""
_ROUNDING = 1e-6  # relative; controls that differ by less are the same in float32


def with_controls(
    data: xr.Dataset,
    controls: Mapping[str, xr.Dataset],
    quantities: Sequence[Quantity],
    compared: Sequence[str] = (),
) -> xr.Dataset:
    """Return a run's node with ``x_control`` of every quantity that some control run holds.

    Also of a quantity's share, which figures draw by default.

    Parameters
    ----------
    data
        The run's cells along ``step``.
    controls
        The same node of each control run, by its name.
    quantities
        What they hold. Steps that a control was not read at hold NaN; those that the run lacks
        are dropped.
    compared
        Further variables that are added in the same way, with or without a step. Those that are
        numbered otherwise in each run (`NUMBERED`) keep all their numbers, along a dimension of
        their own: ``control_concept``.

    Examples
    --------
    >>> run = xr.Dataset({"x": ("step", [4.0, 3.0, 2.0])}, {"step": [0, 1, 2]})
    >>> control = xr.Dataset({"x": ("step", [4.0, 4.5])}, {"step": [0, 2]})
    >>> with_controls(
    ...     run, {"turned 0": control}, [Quantity("x", "loss")]
    ... ).x_control.values
    array([[4. , nan, 4.5]])
    """
    beside = {}
    shares = [quantity.share for quantity in quantities if quantity.share]
    for name in dict.fromkeys(
        [*(quantity.name for quantity in quantities), *shares, *compared]
    ):
        pieces = {}
        for run, node in controls.items():
            if name in node and "step" in node[name].dims:
                pieces[run] = node[name].drop_attrs().reindex(step=data.step)
            elif name in node and name in compared:
                numbered = [dim for dim in NUMBERED if dim in node[name].dims]
                own = {dim: f"{CONTROL}_{dim}" for dim in numbered}
                pieces[run] = node[name].drop_attrs().rename(own)
        if not pieces:
            continue
        stacked = xr.concat(
            list(pieces.values()), dim="run", join="outer", coords="minimal"
        )
        stacked = stacked.assign_coords(run=list(pieces)).reindex(run=list(controls))
        # And not only after what follows from steps.
        if name in data and "step" in stacked.dims:
            stacked = stacked.reindex_like(data[name].isel(step=0, drop=True))
        beside[f"{name}_{CONTROL}"] = stacked
    return data.assign(beside)


def of_controls(data: xr.Dataset, quantity: Quantity) -> Quantity:
    """Return a quantity that names its control runs as a null, where the data hold any."""
    name = f"{quantity.name}_{CONTROL}"
    if name not in data:
        return quantity
    return dataclasses.replace(
        quantity, nulls={**quantity.nulls, CONTROL: _label(data[name])}
    )


def _label(values: xr.DataArray) -> str:
    kinds = dict.fromkeys(kind_of(str(run)) for run in values["run"].values)
    return f"{LABEL} ({', '.join(kinds)})" if len(kinds) > 1 else LABEL


def with_control_bands(
    data: xr.Dataset, figures: Sequence[Figure]
) -> tuple[xr.Dataset, list[Figure]]:
    """Return figures with the band of the control runs wherever the data hold their values.

    Examples
    --------
    >>> values = {
    ...     "x": ("step", [4.0, 2.0]),
    ...     "x_control": (("run", "step"), [[4, 3.0], [4, 5]]),
    ... }
    >>> data = xr.Dataset(values, {"step": [0, 1], "run": ["turned 0", "turned 1"]})
    >>> data, (figure,) = with_control_bands(
    ...     data, [Curves("x", "X", value="x", series=None)]
    ... )
    >>> figure.bands[0].label, data.x_control_high.values
    ('control runs', array([4., 5.]))
    """
    with_bands: list[Figure] = []
    for figure in figures:
        name = f"{figure.value}_{CONTROL}"
        used = {getattr(figure, use) for use in figure.dimensions}
        if (
            not isinstance(figure, Curves | NullComparison)
            or any(band.control for band in figure.bands)
            or name not in data
            or set(data[name].dims) != {RUN, *data[figure.value].dims}
            or used & {RUN, *NUMBERED}
        ):
            with_bands.append(figure)
            continue
        if f"{name}_low" not in data:
            data = data.assign(band_of_draws(data[name], [RUN], name))
        band = Band(f"{name}_low", f"{name}_high", _label(data[name]))
        with_bands.append(dataclasses.replace(figure, bands=[*figure.bands, band]))
    return data, with_bands


def control_rows(
    steps: np.ndarray, values: np.ndarray, controls: np.ndarray
) -> dict[str, Any]:
    """Return first and last value and half-change step of one row in each control run.

    Parameters
    ----------
    steps, values
        The run's steps and values (T,), NaN where a step does not count.
    controls
        The controls' values (runs, T); NaN where they were not read.

    Returns
    -------
    dict
        ``control_first``, ``control_last``, ``control_half_step`` (runs,), and of the run itself
        at the same steps ``run_change`` and ``run_half_step`` (runs,). Two steps tell no half.

    Examples
    --------
    >>> run, control = np.array([8.0, 6.0, 4.0]), np.array([[8.0, np.nan, 8.4]])
    >>> rows = control_rows(np.array([0, 1, 2]), run, control)
    >>> rows["control_last"].round(3), rows["run_change"]
    (array([8.4]), array([-4.]))
    """
    rows = [_of_one(steps, values, control) for control in controls]
    names = (
        "control_first",
        "control_last",
        "control_half_step",
        "run_change",
        "run_half_step",
    )
    return dict(zip(names, np.array(rows).reshape(-1, len(names)).T, strict=True))


def _of_one(
    steps: np.ndarray, values: np.ndarray, control: np.ndarray
) -> tuple[float, ...]:
    at = np.flatnonzero(np.isfinite(values) & np.isfinite(control))
    if len(at) < 2:
        return (float("nan"),) * 5
    run = values[at]
    other = control[at]
    other_half, run_half = (_half(steps[at], series) for series in (other, run))
    return (
        float(other[0]),
        float(other[-1]),
        other_half,
        float(run[-1] - run[0]),
        run_half,
    )


def _half(steps: np.ndarray, values: np.ndarray) -> float:
    change = values[-1] - values[0]
    if len(steps) < 3 or change == 0:  # any two values are half-way at one step
        return float("nan")
    return half_change_step(steps, (values - values[0]) / change)


def control_p_values(
    data: xr.Dataset, trained_start: bool = False
) -> dict[str, np.ndarray]:
    """Return what the control runs of a node say of each row, uncorrected.

    Student's t prediction intervals: a row's number in a further control would lie as far from the
    mean of its controls by chance. The spread is pooled over the rows of a quantity and over kinds
    of controls; the row's own counts where it is larger, and few degrees of freedom are borrowed.
    Of several kinds of controls the one that fits the run best counts. NaN where there are too few
    controls to give a spread, or none but of a kind that is no null (`NO_NULLS`): after a trained
    start those that are made of the run's motion are none either (`MOTION`).

    Returns
    -------
    dict
        Over rows: those of the ``change`` and of the ``half``-change step, two-sided, and as which
        ``share`` of a test each row counts where the rows of its quantity move together.
    """
    kinds = np.array([kind_of(str(run)) for run in data["run"].values])
    null = ~np.isin(kinds, [*NO_NULLS, *(MOTION if trained_start else ())])
    data = data.isel(run=null)
    kinds = kinds[null]
    change = (
        (data["control_last"] - data["control_first"]).transpose("row", "run").values
    )
    run_change = data["run_change"].transpose("row", "run").values
    half = np.log1p(data["control_half_step"].transpose("row", "run").values)
    run_half = np.log1p(data["run_half_step"].transpose("row", "run").values)
    p_change, p_half, share = (np.full(len(change), np.nan) for _ in range(3))
    for rows in rows_of_quantities(data):
        p_change[rows], of_change = _predicted(run_change[rows], change[rows], kinds)
        p_half[rows], of_half = _predicted(run_half[rows], half[rows], kinds)
        share[rows] = max(of_change, of_half)
    return {"change": p_change, "half": p_half, "share": share}


def rows_of_quantities(data: xr.Dataset) -> Iterator[np.ndarray]:
    """Give the positions of the rows of every quantity."""
    names = data["row_quantity"].values
    for name in dict.fromkeys(names):
        yield np.flatnonzero(names == name)


def _predicted(
    run: np.ndarray, controls: np.ndarray, kinds: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return two-sided p-values of `run` (rows, runs) as one more draw of `controls` (rows, runs).

    `run` differs between runs only by the steps that they were read at. Beside them, as which share
    of a test each row counts.
    """
    is_finite = np.isfinite(controls) & np.isfinite(run)
    residuals = np.zeros(controls.shape)
    freedom = np.zeros(len(controls))
    means = {}
    counts = {}
    for kind in dict.fromkeys(kinds):
        of_kind = is_finite & (kinds == kind)
        count = of_kind.sum(1)
        with np.errstate(invalid="ignore"):
            mean = np.where(of_kind, controls, 0.0).sum(1) / count
            offset = np.where(of_kind, run - controls, 0.0).sum(1) / count
            residuals += np.where(of_kind, controls - mean[:, None], 0.0)
        freedom += np.maximum(count - 1, 0)
        means[kind] = offset
        counts[kind] = count
    total = freedom.sum()
    squares = (residuals**2).sum(1)
    if total == 0:
        return np.full(len(run), np.nan), 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        own_variance = np.where(freedom > 0, squares / freedom, 0.0)
    spread = np.sqrt(np.maximum(squares.sum() / total, own_variance))
    rounding = _ROUNDING * np.where(is_finite, np.abs(controls), 0.0).max(1)
    apart = _apart(residuals, freedom.max())
    borrowed = freedom + min(BORROWED, _POOLED * freedom.max() * np.nan_to_num(apart))
    p_values = np.full(len(run), np.nan)
    for kind, offset in means.items():
        with np.errstate(invalid="ignore", divide="ignore"):
            score = np.abs(offset) / np.maximum(
                spread * np.sqrt(1 + 1 / counts[kind]), rounding
            )
        p_values = np.fmax(p_values, 2 * t_above(score, borrowed))
    return p_values, min(
        1.0, (1 + _COUNTED * np.nan_to_num(apart, nan=np.inf)) / len(run)
    )


def _apart(residuals: np.ndarray, freedom: float) -> float:
    """Return how many rows move for themselves beside the first, of residuals (rows, runs).

    With a covariance S of the rows it is tr(S)² / tr(S²) − 1, estimated without bias for normal
    residuals; NaN where there are fewer than three runs, which cannot tell.
    """
    squares = ((residuals @ residuals.T) ** 2).sum()
    if not squares or freedom < 2:
        return float("nan")
    ratio = (residuals**2).sum() ** 2 / squares
    return float((freedom + 2) * (ratio - 1) / max(freedom - ratio, 1e-9))
