"""The axis of a dated text: the slider's, with a shade for each step that can be a date."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...words.content import Content
from ..scales import StepScale
from ..style import SHADES


def places(steps: Sequence[int], at: Sequence[float]) -> list[float]:
    """Return the place of steps on the axis in percent, as the page opens with it.

    Examples
    --------
    >>> places((1, 10, 100), [1, 10, 100])
    [16.67, 50.0, 83.33]
    """
    scale = _scale(steps)
    low, high = scale.span
    share = 100 * (scale.positions(at) - low) / (high - low)
    return [round(float(place), 2) for place in share]


def shades(steps: Sequence[int], at: Sequence[float]) -> list[int]:
    """Return the shade of each step: its place on the axis from the first step after 0.

    Examples
    --------
    >>> shades((0, 1, 10, 100), [1, 10, 100])
    [0, 6, 11]
    """
    scale = _scale(steps)
    first, last = scale.positions(
        [min((s for s in steps if s > 0), default=0), steps[-1]]
    )
    share = (scale.positions(at) - first) / ((last - first) or 1.0)
    cells = np.clip(np.floor(share * SHADES), 0, SHADES - 1).astype(int)
    return [int(cell) for cell in cells]


def step_key(content: Content) -> Iterator[tuple[int, float, float, int]]:
    """Give each step that can be a date, with the place, width and shade of its cell."""
    steps = content.steps
    scale = _scale(steps)
    low, high = scale.span
    edges = 100 * (scale.edges(steps) - low) / (high - low)
    for step, (left, right), shade in zip(
        steps, edges, shades(steps, steps), strict=True
    ):
        if step > 0 or content.based:
            yield step, round(float(left), 2), round(float(right - left), 2), shade


def _scale(steps: Sequence[int]) -> StepScale:
    """Return the axis of the slider, as the page opens with it."""
    return StepScale(tuple(steps), "log")
