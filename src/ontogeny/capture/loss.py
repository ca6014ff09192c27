"""The loss of each text, in nats per predicted token."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from ..errors import ArgumentError, NonFiniteError, check_choice
from ..inputs import Batch, Inputs
from .logits import LogitRows
from .own_frequencies import OwnFrequencies

_ROWS_AT_ONCE = 1024  # bounds the float32 copy of half-precision logits


def resolve_objective(model: nn.Module, objective: str = "auto") -> str:
    """Return ``"causal"`` or ``"masked"``; ``"auto"`` reads it off the model's class name.

    Raises
    ------
    ArgumentError
        If the class name does not show it.
    """
    check_choice("objective", objective, ("auto", "causal", "masked"))
    if objective != "auto":
        return objective
    for name in (cls.__name__ for cls in type(model).__mro__):
        if "MaskedLM" in name:
            return "masked"
        if "CausalLM" in name or "LMHead" in name:
            return "causal"
    raise ArgumentError(
        f"the class name {type(model).__name__} does not show what the model predicts; "
        "give objective='causal' (the next token) or objective='masked' (masked tokens)."
    )


def next_tokens(inputs: Inputs) -> np.ndarray:
    """Return (n, L) bool: the ordinary tokens that have a token before them to predict them."""
    positions = inputs.ordinary.copy()
    positions[:, 0] = False
    positions[:, 1:] &= inputs.mask[:, :-1]
    return positions


class LossCollector:
    """Cross-entropy of the predicted tokens, summed per text.

    Predicted are the ordinary tokens (causal: those after a first token), or the masked
    `positions`. Special tokens and padding are never predicted. Where the first batch shows that
    the model returns the output of its vocabulary map untouched, that map is afterwards given the
    predicting positions only, which saves most of its cost. With `own` it also tells what the
    means of the model's own predictions cost.
    """

    paths: tuple[str, ...] = ()

    def __init__(
        self,
        model: nn.Module,
        inputs: Inputs,
        positions: np.ndarray | None = None,
        own: bool = False,
    ) -> None:
        self._targets = inputs.ids
        self._shift = 0
        if positions is None:
            positions = next_tokens(inputs)
            self._shift = 1
        self._positions = positions
        self._own = OwnFrequencies(inputs, positions, bool(self._shift)) if own else None
        self._sums = np.zeros(len(inputs))
        self._name = type(model).__name__
        self._logits = LogitRows.of(model)
        self._vocabulary = 0

    def start(self, batch: Batch) -> set[str] | None:
        """Find the batch's predicted tokens and the rows that predict them."""
        row, column = np.nonzero(self._positions[batch.rows, batch.columns])
        self._batch, self._row, self._column = batch, row, column
        self._target = torch.from_numpy(self._targets[batch.rows, batch.columns][row, column])
        self._logits.choose(batch, row, column - self._shift)
        return None if len(row) else set()

    def attached(self) -> AbstractContextManager[None]:
        """Watch the vocabulary map for as long as batches are fed."""
        return self._logits.attached()

    def take(self, path: str, output: Any) -> None:
        """Nothing is taken of modules."""

    def finish(self, output: Any) -> None:
        """Add the batch's losses to their texts."""
        logits = self._logits.take(output)
        if logits is None:
            return
        self._vocabulary = logits.shape[-1]
        text = self._batch.rows[self._row]
        column = np.arange(self._positions.shape[1])[self._batch.columns][self._column]
        losses = self._losses(logits, text, column)
        self._sums += np.bincount(text, weights=losses, minlength=len(self._sums))

    def _losses(self, logits: Tensor, text: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Return the loss of each predicted token, a part of the rows at once."""
        target, pieces = self._target.to(logits.device), []
        for start in range(0, len(target), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            found = logits[rows].float().log_softmax(-1)
            pieces.append(-found.gather(1, target[rows, None])[:, 0])
            if self._own is not None:
                self._own.add(text[rows], column[rows], found.exp_())
        return torch.cat(pieces).double().cpu().numpy()

    def result(self) -> xr.Dataset:
        """Return ``loss(text)`` in nats per predicted token and ``tokens(text)``, their number.

        A text without a predicted token has a loss of NaN and no tokens. ``own_unigram(text)`` and,
        of causal models, ``own_bigram(text)`` are what the means of the model's own predictions
        cost, where they were asked for (`OwnFrequencies`). Attributes hold the
        ``objective`` and ``vocabulary``, the number of tokens that the model gives a probability.

        Raises
        ------
        NonFiniteError
            If a loss is not finite.
        """
        tokens = self._positions.sum(axis=1)
        bad = np.flatnonzero(~np.isfinite(self._sums))
        if len(bad):
            raise NonFiniteError(
                f"the loss of {self._name} is not finite in {len(bad)} of {len(tokens)} texts; "
                f"the first is text {bad[0]}."
            )
        loss = np.full(len(tokens), np.nan)
        np.divide(self._sums, tokens, out=loss, where=tokens > 0)
        own = {} if self._own is None else self._own.of_texts()
        return xr.Dataset(
            {
                "loss": ("text", loss, {"units": "nats per token"}),
                "tokens": ("text", tokens),
                **{name: ("text", of, {"units": "nats per token"}) for name, of in own.items()},
            },
            coords={"text": np.arange(len(tokens))},
            attrs={
                "objective": "causal" if self._shift else "masked",
                "vocabulary": self._vocabulary,
            },
        )
