"""What texts cost a model at its best temperature: a better calibration is not learning.

A run that goes on from a trained model, on noise as well, changes how sure the model is of what it
says. With b the inverse temperature, L(b) = log sum exp(b z) - b z_target of the logits z; both its
first derivatives at b = 1 come with the probabilities, so that a Newton step gives the best b.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .renaming import LEAST

_ROWS = 256  # tokens at once, so that a vocabulary takes little memory
_RANGE = (-0.4, 0.6)  # of b - 1: beyond it the parabola says nothing


class Calibration:
    """Sums the derivatives of the loss by the inverse temperature, text by text."""

    def __init__(self, texts: int) -> None:
        self._sums = np.zeros((2, texts))

    def add(self, text: np.ndarray, target: Tensor, log_p: Tensor) -> None:
        """Add log-probabilities (e, vocabulary) of tokens in texts (e,), and of targets (e,)."""
        found = []
        for rows in log_p.split(_ROWS):
            p, finite = rows.exp(), rows.clamp_min(LEAST)
            mean = (p * finite).sum(1)
            found.append(torch.stack([mean, (p * finite * finite).sum(1) - mean * mean]))
        first, second = torch.cat(found, dim=1).double()
        for sums, values in zip(self._sums, (first - target.double(), second), strict=True):
            sums += np.bincount(text, weights=values.cpu().numpy(), minlength=len(sums))

    def losses(self, sums: np.ndarray) -> np.ndarray:
        """Return the summed losses (texts,) at the best temperature of all texts together."""
        first, second = self._sums.sum(axis=1)
        by = np.clip(-first / second, *_RANGE) if second > 0 else 0.0
        calibrated: np.ndarray = sums + by * self._sums[0] + by * by / 2 * self._sums[1]
        return calibrated
