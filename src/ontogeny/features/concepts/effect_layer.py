"""What the parts of one layer cost at one checkpoint: to first order, and by removal."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from ...concepts.joint.presence import Decoder
from ...errors import ArgumentError
from ...summary.noise import mean_stderr
from ...units import Units
from .effect_controls import first_order_bands, others_of, random_directions, strengths
from .removal import LossAtTokens

FIRST_ORDER = 200  # random directions of the first-order band
NEAREST = 20  # other latents of the first-order band


class LayerEffects:
    """One layer at one checkpoint: its codes, decoders and gradients, and what removal costs."""

    def __init__(
        self,
        path: str,
        at: LossAtTokens,
        gradients: np.ndarray,
        rows: np.ndarray,
        layer: xr.Dataset,
        A: np.ndarray,
        units: Units,
    ) -> None:
        self._path, self._at, self._gradients = path, at, gradients
        self.all_codes = layer["codes"].values
        if len(self.all_codes) != len(A):
            raise ArgumentError(
                f"codes are of {len(self.all_codes)} tokens, and {path!r} gives {len(A)}."
            )
        self._decoder = Decoder(self.all_codes, np.zeros(len(A), dtype=int))
        self.codes, self.units = self.all_codes[rows], units
        self.weights = at.tokens.astype(np.float64)
        self._A, self._D = A[rows].astype(np.float64), self.decoders(A)

    def decoders(self, A: np.ndarray) -> np.ndarray:
        """Return least-squares decoders (r, m) in the units of activations (n, m)."""
        return self._decoder.decode((A - A.mean(axis=0)).astype(np.float32)).astype(np.float64)

    def mean(self, of_text: np.ndarray) -> np.ndarray:
        """Return means (...) over the predicted tokens of effects (..., texts)."""
        return np.asarray(of_text @ self.weights / self.weights.sum())

    def _per_token(self, sums: np.ndarray) -> np.ndarray:
        return np.divide(sums, self.weights, out=np.zeros_like(sums), where=self.weights > 0)

    @cached_property
    def _first_order(self) -> np.ndarray:
        """(r, texts) effects of all latents to first order, in nats."""
        of_row = -(self._gradients @ self._D.T) * self.codes
        text, count = self._at.sample.text, len(self.weights)
        return np.stack([np.bincount(text, weights=values, minlength=count) for values in of_row.T])

    @property
    def effect(self) -> np.ndarray:
        """(r,) effects of all latents to first order, in nats per predicted token."""
        return np.asarray(self._first_order.sum(axis=1) / self.weights.sum())

    def first_order(self, seed: int) -> dict[str, Any]:
        """Return the first-order effects of all latents, their noise and their controls."""
        total = self.weights.sum()
        means, weights = self.units.means(self._per_token(self._first_order), self.weights)
        directions = random_directions(self._A, FIRST_ORDER, [seed, 5])
        others = others_of(self.codes, min(NEAREST, int(self.codes.any(axis=0).sum()) - 1))
        bands = first_order_bands(self.codes, self._gradients, self._D, directions, others)
        ends = {
            f"effect_{name}_{end}": ("concept", values / total)
            for name in ("random", "other")
            for end, values in zip(("low", "high"), getattr(bands, name), strict=True)
        }
        error = mean_stderr(means, weights)
        return {"effect": ("concept", self.effect), "effect_stderr": ("concept", error), **ends}

    def _cost(self, codes: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return what a removal costs each text, in nats per predicted token."""
        return self._per_token(self._at.removed(self._path, codes, direction))

    def removed(self, j: int) -> np.ndarray:
        """Return (texts,) what the removal of a concept costs."""
        return self._cost(self.codes[:, j], self._D[j])

    def random(self, j: int, count: int, seed: int) -> np.ndarray:
        """Return (count, texts) what equally strong random directions cost."""
        length = np.linalg.norm(self._D[j])
        directions = random_directions(self._A, count, [seed, 6, int(j)])
        return np.stack([self._cost(self.codes[:, j], length * d) for d in directions])

    def elsewhere(self, j: int, others: np.ndarray) -> np.ndarray:
        """Return (k, texts) what its direction costs on the tokens of other concepts."""
        size = strengths(self.codes)
        return np.stack(
            [self._cost(self.codes[:, k] * (size[j] / size[k]), self._D[j]) for k in others]
        )
