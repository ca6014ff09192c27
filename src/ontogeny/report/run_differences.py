"""What sets a run apart from others at the same steps, as numbers and as a figure of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from ..figures import Band, Curves
from .figures.drawable import CONTROL_STEP, Drawable
from .figures.runs import DIFFERENCE, RUN
from .run_words import band_words, difference_caption

# What follows from a variable.
WORDS = {
    "of_others": "mean of the other runs",
    "difference": "difference",
    "low": "lower end of the band around no difference",
    "high": "upper end of the band around no difference",
}


def difference_from(
    run: np.ndarray, others: Sequence[np.ndarray], factor: float
) -> dict[str, np.ndarray]:
    """Return what sets a run apart from others at the same places.

    The page computes the same in the same order, so that both agree bit for bit.

    Parameters
    ----------
    own, others
        Values of the run and of each of the others, in one shape; NaN where there is none.
    factor
        Half of the band in standard deviations of the others (n − 1).

    Returns
    -------
    dict
        ``of_others``, their mean; ``difference``; and the ends ``low`` and ``high`` of a band
        around 0, NaN for a single other run. NaN wherever one of the runs has no value.

    Examples
    --------
    >>> difference = difference_from(
    ...     np.array([5.0]), [np.array([1.0]), np.array([3.0])], 1.0
    ... )
    >>> difference["difference"], difference["high"].round(3)
    (array([3.]), array([1.414]))
    """
    total = others[0]
    for other in others[1:]:
        total = total + other
    mean = total / len(others)
    half = np.full_like(mean, math.nan)
    if len(others) > 1:
        squares = np.zeros_like(mean)
        for other in others:
            squares = squares + (other - mean) * (other - mean)
        half = factor * np.sqrt(squares / (len(others) - 1))
    return {"of_others": mean, "difference": run - mean, "low": -half, "high": half}


def band_of_two(
    run: np.ndarray,
    ends: Sequence[np.ndarray],
    other: np.ndarray,
    other_ends: Sequence[np.ndarray],
) -> dict[str, np.ndarray]:
    """Return the band of the difference of two runs by the intervals of both, around 0.

    Errors are added as if independent, which is too wide where both read the same texts.

    Examples
    --------
    >>> one, two = np.array([5.0]), np.array([4.0])
    >>> band_of_two(one, (one - 3, one + 3), two, (two - 4, two + 4))
    {'low': array([-5.]), 'high': array([5.])}
    """
    below = run - ends[0]
    above = ends[1] - run
    other_below = other - other_ends[0]
    other_above = other_ends[1] - other
    return {
        "low": -np.sqrt(above * above + other_below * other_below),
        "high": np.sqrt(below * below + other_above * other_above),
    }


def difference_of(drawable: Drawable) -> Drawable | None:
    """Return the difference of a figure's first run from the others as a figure of its own.

    Its node holds the difference and its terms, in the form that is drawn. None where a figure has
    no runs, or where no step is known of all of them.
    """
    runs = drawable.runs
    figure = drawable.figure
    if runs is None or not isinstance(figure, Curves):
        return None
    name = figure.relative or figure.value
    data = _differences(drawable, name)
    names = derived_names(name, bool(runs.controls))
    low = names["low"]
    high = names["high"]
    if not np.isfinite(data[names["difference"]].values).any():
        return None
    banded = bool(np.isfinite(data[low].values).any())
    arranged = runs.views[DIFFERENCE]
    difference = replace(
        arranged.figure,
        id=f"{figure.id}-{DIFFERENCE}",
        title=f"{figure.title}: difference",
        caption=difference_caption(drawable, runs),
        value=names["difference"],
        relative=None,
        select={},
        interval=None,
        bands=[Band(low, high, band_words(runs))] if banded else [],
        boundaries=(),
        reference=None,
        y_scale="linear",
    )
    node = replace(drawable.node, dataset=data)
    return replace(arranged, node=node, figure=difference, derived=True)


def derived_names(name: str, controls: bool) -> dict[str, str]:
    """Return the names of what follows from a variable.

    Examples
    --------
    >>> derived_names("loss", controls=True)["low"]
    'loss_difference_control_low'
    """
    others, band = ("controls", "control_") if controls else ("others", "")
    return {
        "of_others": f"{name}_of_{others}",
        "difference": f"{name}_difference",
        "low": f"{name}_difference_{band}low",
        "high": f"{name}_difference_{band}high",
    }


def _differences(drawable: Drawable, name: str) -> xr.Dataset:
    """Return a run's values, the mean of the others, the difference and its band."""
    mine, others = _terms(drawable, name)
    values = mine.values.astype(float)
    beside = [other.transpose(*mine.dims).values.astype(float) for other in others]
    assert drawable.runs is not None
    difference = difference_from(values, beside, drawable.runs.factor)
    if len(beside) == 1 and not drawable.runs.controls and drawable.figure.interval:
        ends = [
            [end.isel({RUN: i}).values for end in _interval(drawable, mine.dims)]
            for i in (0, 1)
        ]
        difference |= band_of_two(values, ends[0], beside[0], ends[1])
    figure = drawable.figure
    label = drawable.label(figure.value)
    shared = {
        "units": figure.relative_label
        if name == figure.relative
        else drawable.units(figure.value)
    }
    arrays = {name: mine.assign_attrs(long_name=label, **shared)}
    for key, variable in derived_names(name, bool(drawable.runs.controls)).items():
        attrs = {"long_name": WORDS[key], **shared}
        arrays[variable] = mine.copy(data=difference[key]).assign_attrs(attrs)
    return xr.Dataset(arrays)


def _terms(drawable: Drawable, name: str) -> tuple[xr.DataArray, list[xr.DataArray]]:
    """Return the first run's values and those of the others, at the same steps."""
    runs = drawable.runs
    assert runs is not None
    data = drawable.array(name)
    if not runs.controls:
        return data.isel({RUN: 0}, drop=True), [
            data.isel({RUN: i}, drop=True) for i in runs.others
        ]
    control = drawable.thin(runs.controls[name]).rename({CONTROL_STEP: "step"})
    steps = np.intersect1d(data["step"], control["step"])
    others = control.sel(step=steps)
    return data.sel(step=steps), [
        others.isel({RUN: i - 1}, drop=True) for i in runs.others
    ]


def _interval(drawable: Drawable, dims: Sequence[object]) -> list[xr.DataArray]:
    """Return both ends of the interval in the form that is drawn, over `run` and `dims`."""
    figure = drawable.figure
    ends = []
    for name in figure.interval:
        relative = drawable.relative_name(name)
        values = drawable.array(relative or name).astype(float)
        if figure.relative and not relative:
            values = (
                values * drawable.array(figure.relative) / drawable.array(figure.value)
            )
        ends.append(values.transpose(RUN, *dims))
    return ends
