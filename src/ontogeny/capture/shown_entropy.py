"""Attention entropy of single tokens, for the few texts whose tokens are shown."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from ..inputs import ShownTexts
from ..inputs.batches import Batch
from .activation import sampled_rows


class ShownEntropies:
    """Keeps the entropy of each ordinary token that is shown, mean over heads.

    Parameters
    ----------
    shown
        The texts.
    """

    def __init__(self, shown: ShownTexts) -> None:
        self._shown = shown
        self._entropy: dict[str, np.ndarray] = {}
        self._uniform = np.full(len(shown.sample), np.nan)

    def start(self, batch: Batch) -> None:
        """Find the tokens of the batch that are shown."""
        self._row, self._slot = sampled_rows(self._shown.sample, batch)
        self._column = batch.first[self._row] + self._shown.sample.position[self._slot]

    def take(self, path: str, entropy: Tensor) -> None:
        """Keep what is shown of one module's entropies, (texts, heads, tokens)."""
        store = self._entropy.setdefault(path, np.full(len(self._uniform), np.nan))
        store[self._slot] = entropy.mean(dim=1).cpu().numpy()[self._row, self._column]

    def finish(self, uniform: np.ndarray) -> None:
        """Keep the entropy (texts, tokens) of equal attention to all visible keys."""
        self._uniform[self._slot] = uniform[self._row, self._column]

    def variables(self) -> dict[str, Any]:
        """Return ``shown_entropy(layer, shown_text, shown_place)`` and its uniform counterpart.

        Both float32 in nats, NaN at special tokens and beyond the text.
        """
        tokens = ("shown_text", "shown_place")
        values = np.stack(list(self._entropy.values())).astype(np.float32)
        uniform = self._uniform.astype(np.float32)
        return {
            "shown_entropy": (("layer", *tokens), self._shown.grid(values), {"units": "nats"}),
            "shown_entropy_uniform": (tokens, self._shown.grid(uniform), {"units": "nats"}),
        }
