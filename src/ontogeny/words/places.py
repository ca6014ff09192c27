"""Places on the axis along which runs are compared, as sentences name them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .formats import fine_step, joined, three_digits

_LARGE = {1e12: "trillion", 1e9: "billion", 1e6: "million"}


class Places:
    """Places that are steps.

    ``dimension`` is that of aligned curves, ``words`` the title of their axis.
    """

    dimension = "step"
    words = "training step"

    def say(
        self,
        values: Sequence[float],
        last: str = " and ",
        intervals: Sequence[tuple[float, float]] = (),
    ) -> str:
        """Return places as a sentence names them.

        Examples
        --------
        >>> Places().say([51, 60, 58], intervals=[(44, 58)])
        'step 51 (44–58), 60 and 58'
        """
        unit = self._unit(max(values))
        written = [self._number(value / unit) for value in values]
        for i, ends in enumerate(intervals):
            if np.isfinite(ends).all():
                low, high = (self._number(end / unit) for end in ends)
                written[i] += f" ({low}–{high})"
        return self._named(joined(written, last), unit)

    def _unit(self, largest: float) -> float:
        return 1.0

    def _number(self, value: float) -> str:
        return fine_step(value)

    def _named(self, numbers: str, unit: float) -> str:
        return f"step {numbers}"


class TokenPlaces(Places):
    """Places that count tokens."""

    words = "training tokens"

    def _unit(self, largest: float) -> float:
        return next((unit for unit in _LARGE if largest >= unit), 1.0)

    def _number(self, value: float) -> str:
        return three_digits(value)

    def _named(self, numbers: str, unit: float) -> str:
        return " ".join(filter(None, [numbers, _LARGE.get(unit, ""), "tokens"]))


class LossPlaces(Places):
    """Places that are losses."""

    dimension = "loss_level"
    words = "loss level"

    def _number(self, value: float) -> str:
        return f"{value:.3g}"

    def _named(self, numbers: str, unit: float) -> str:
        return f"loss {numbers}"
