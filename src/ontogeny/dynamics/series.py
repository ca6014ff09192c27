"""Validation of steps, values and noise floors of series over training steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import numbers
from ..errors import ArgumentError, NonFiniteError, check_whole

# Changes below this share of the values cannot be distinguished from float32 rounding.
RESOLUTION = 1e-6


def resolution(scale: ArrayLike | None, series: np.ndarray) -> np.ndarray:
    """Return the smallest measurable change of each series, shape (...,)."""
    if scale is None:
        return RESOLUTION * np.max(np.nan_to_num(np.abs(series), nan=0.0), axis=-1)
    return RESOLUTION * _broadcast("scale", _sizes("scale", scale), series.shape[:-1])


def floors(
    floor: ArrayLike,
    scale: ArrayLike | None,
    series: np.ndarray,
    *,
    may_be_unknown: bool = False,
    name: str = "floor",
) -> np.ndarray:
    """Return the floor at every step, shape (..., T), at least the resolution.

    NaN, where it is allowed, means that the noise is unknown and stays NaN. Errors call it `name`.
    """
    sizes = _sizes(name, floor, may_be_unknown)
    if sizes.shape != series.shape:
        sizes = _broadcast(name, sizes, series.shape[:-1])[..., None]
    return np.maximum(
        np.broadcast_to(sizes, series.shape), resolution(scale, series)[..., None]
    )


def _sizes(name: str, value: ArrayLike, may_be_unknown: bool = False) -> np.ndarray:
    sizes = numbers(name, value)
    refused = np.isinf(sizes) if may_be_unknown else ~np.isfinite(sizes)
    if refused.any():
        kind = "infinite" if may_be_unknown else "NaN or infinite"
        raise NonFiniteError(f"{name} holds {np.sum(refused)} {kind} values.")
    if (sizes < 0).any():
        raise ArgumentError(
            f"{name} must not be negative; its minimum is {np.nanmin(sizes)}."
        )
    return sizes


def _broadcast(name: str, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise ArgumentError(
            f"{name} must be one number, or one for each series {shape}"
            f"{' or each value' if name != 'scale' else ''}; its shape is {values.shape}."
        ) from None


def checked_steps(steps: ArrayLike) -> np.ndarray:
    """Return steps (T,) as float64 if they increase from 0 or more."""
    times = numbers("steps", steps)
    if times.ndim != 1 or not len(times) or not np.isfinite(times).all():
        raise ArgumentError(
            f"steps must be a list of numbers; its shape is {times.shape}."
        )
    if times[0] < 0 or np.any(np.diff(times) <= 0):
        raise ArgumentError(
            f"steps must increase from 0 or more; got {times.tolist()}."
        )
    return times


def checked_values(
    values: ArrayLike, count: int, reference_index: int | None = None
) -> np.ndarray:
    """Return a copy of the series (..., T) in float64; NaN marks missing steps.

    The value at the reference, which is 0 by construction, counts as missing.
    """
    series = numbers("values", values).copy()
    if series.ndim == 0 or series.shape[-1] != count:
        raise ArgumentError(
            f"values must have shape (..., {count}), one for each step; its shape is "
            f"{series.shape}."
        )
    if np.isinf(series).any():
        raise NonFiniteError(
            f"values holds {np.sum(np.isinf(series))} infinite values."
        )
    if reference_index is not None:
        series[..., check_whole("reference_index", reference_index, 0, count - 1)] = (
            np.nan
        )
    return series


def checked_series(
    name: str, values: ArrayLike, steps: np.ndarray, reference_index: int | None
) -> np.ndarray:
    """Return a copy of one series (T,), as `checked_values` does of many."""
    series = numbers(name, values)
    if series.ndim != 1:
        raise ArgumentError(
            f"{name} must be one series ({len(steps)},); its shape is {series.shape}."
        )
    return checked_values(series, len(steps), reference_index)
