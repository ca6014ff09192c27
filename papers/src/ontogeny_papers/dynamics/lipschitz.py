"""Lipschitz ratios along a run, and local constants by perturbation (Bernas 2025, sec. 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ontogeny.arrays import Array, matrix, namespace
from ontogeny.dynamics.series import RESOLUTION, checked_steps, checked_values
from ontogeny.errors import ArgumentError


@dataclass(frozen=True, eq=False)
class LipschitzRatios:
    """What `lipschitz_ratios` found; ``...`` are the leading dimensions of the series.

    Parameters
    ----------
    ratio
        (..., T): change of the output per change of the input; NaN where the input did not
        measurably change, as at the reference itself.
    largest
        (...,): the largest ratio, a lower bound of any Lipschitz constant; NaN without one.
    at_step
        (...,): the step where it occurs.
    """

    ratio: np.ndarray
    largest: np.ndarray
    at_step: np.ndarray


def lipschitz_ratios(
    steps: ArrayLike, output: ArrayLike, input_: ArrayLike
) -> LipschitzRatios:
    """Return ``d(f(x_t), f(x_ref)) / d(x_t, x_ref)`` along a run.

    Parameters
    ----------
    steps
        Training steps (T,), increasing.
    output
        Distances of the outputs to the reference's (..., T); NaN where a step is missing.
    input_
        Distances of the inputs, (..., T) or (T,).

    Raises
    ------
    ArgumentError
        If shapes do not fit or a distance is negative.
    NonFiniteError
        If a distance is infinite.

    Notes
    -----
    Bernas (2025), sec. 5.2. A map with Lipschitz constant L keeps all ratios below L. Bounded
    ratios do not show the converse: a jump shows only where a step comes near the reference.

    Examples
    --------
    >>> ratios = lipschitz_ratios([0, 1, 2], [6.0, 1.0, 0.0], [3.0, 1.0, 0.0])
    >>> ratios.ratio, float(ratios.largest), float(ratios.at_step)
    (array([ 2.,  1., nan]), 2.0, 0.0)
    """
    steps = checked_steps(steps)
    top = checked_values(output, len(steps))
    below = checked_values(input_, len(steps))
    try:
        below = np.broadcast_to(below, top.shape)
    except ValueError:
        raise ArgumentError(
            f"input_ must have shape {top.shape} or ({len(steps)},); got {below.shape}."
        ) from None
    if (top < 0).any() or (below < 0).any():
        raise ArgumentError("distances must not be negative.")
    size = np.max(np.nan_to_num(below), axis=-1, keepdims=True)
    moved = below > RESOLUTION * size
    ratio = np.where(moved, top / np.where(moved, below, 1.0), np.nan)
    filled = np.where(np.isnan(ratio), -np.inf, ratio)
    best = filled.argmax(-1)
    largest = np.take_along_axis(filled, best[..., None], -1)[..., 0]
    is_finite = np.isfinite(largest)
    return LipschitzRatios(
        ratio,
        np.where(is_finite, largest, np.nan),
        np.where(is_finite, steps[best], np.nan),
    )


def local_constants(
    function: Callable[[Array], Mapping[str, Array]],
    x: Array,
    directions: Sequence[Array],
    *,
    relative_radius: float = 1e-3,
) -> dict[str, np.ndarray]:
    """Return ``|f(x + e) - f(x)| / |e|`` for every output of `function` and every direction.

    Parameters
    ----------
    function
        Gives arrays by name, such as the activations of layers.
    x
        Where; an array of any shape, such as all parameters in a row.
    directions
        Arrays like x; only their direction counts.
    relative_radius
        ``|e|`` as a share of ``|x|``.

    Returns
    -------
    dict
        One ratio for each direction by output name: lower bounds of the local Lipschitz constant
        (Bernas 2025, Def. 36). Random directions in many dimensions fall far short of the worst.

    Raises
    ------
    ArgumentError
        If x or a direction is zero, or the radius is not positive.
    NonFiniteError
        If an output is NaN or infinite.

    Examples
    --------
    >>> x = np.array([1.0, 1.0])
    >>> constants = local_constants(
    ...     lambda v: {"y": 3 * v[:1, None]}, x, [[1.0, 0.0], [0.0, 2.0]]
    ... )
    >>> constants["y"].round(6)
    array([3., 0.])
    """
    if not relative_radius > 0:
        raise ArgumentError(
            f"relative_radius must be above 0; got {relative_radius!r}."
        )
    xp = namespace(x)
    norm = float(xp.linalg.vector_norm(x))
    if norm == 0 or not len(directions):
        raise ArgumentError("x must not be zero, and there must be a direction.")
    radius = relative_radius * norm
    first = function(x)
    ratios: dict[str, list[float]] = {name: [] for name in first}
    for direction in directions:
        array = xp.asarray(direction, dtype=x.dtype, device=x.device)
        length = float(xp.linalg.vector_norm(array))
        if length == 0 or not np.isfinite(length):
            raise ArgumentError("a direction must be finite and not zero.")
        for name, value in function(x + array * (radius / length)).items():
            before = matrix(name, first[name])
            after = matrix(name, value)
            moved = xp.astype(after, xp.float64) - xp.astype(before, xp.float64)
            ratios[name].append(float(xp.linalg.vector_norm(moved)) / radius)
    return {name: np.array(values) for name, values in ratios.items()}
