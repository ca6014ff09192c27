"""Losses in the training log that are out of order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..checkpoint import Checkpoint
from ..findings import Finding
from ..recorded import at_checkpoints, training_losses

_FEWEST = 5  # checkpoints with a loss
_OUTLIER = 6.0  # times the median distance of a value from the middle of its neighbours
_SHARE = 0.1  # of the loss itself


def losses(folder: Path | None, checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Yield checkpoints at which the logged loss is far above those before and after.

    Read are the logs of `ontogeny.trajectory.recorded`.
    """
    logged = training_losses(folder, checkpoints)
    steps, values = at_checkpoints(logged, [c.step for c in checkpoints])
    if len(steps) < _FEWEST:
        return
    bend = np.abs(np.convolve(values, [-0.5, 1.0, -0.5], mode="valid"))
    for k in range(1, len(values) - 1):
        low, value, high = values[k - 1 : k + 2]
        elsewhere = np.delete(
            bend, [j for j in (k - 2, k - 1, k) if 0 <= j < len(bend)]
        )
        usual = float(np.median(elsewhere)) if elsewhere.size else 0.0
        if value - max(low, high) > max(_OUTLIER * usual, _SHARE * abs(value)):
            text = (
                f"the logged loss at {{step}} {steps[k]} is {value:.3g}, well above those at "
                f"{{step}}s {steps[k - 1]} ({low:.3g}) and {steps[k + 1]} ({high:.3g})"
            )
            yield Finding("loss", "suspected", (steps[k],), text)
