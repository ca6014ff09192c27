"""The loss of each text, in nats per predicted token."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from ..errors import ArgumentError, NonFiniteError, check_choice
from ..inputs import Inputs
from .own_frequencies import OwnFrequencies
from .predicted import PredictionCollector


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


class LossCollector(PredictionCollector):
    """Cross-entropy of the predicted tokens, summed per text.

    Special tokens and padding are never predicted. With `own` it also tells what the means of the
    model's own predictions cost.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Inputs,
        positions: np.ndarray | None = None,
        own: bool = False,
    ) -> None:
        super().__init__(model, inputs, positions)
        self._own = OwnFrequencies(inputs, self.positions, bool(self.shift)) if own else None
        self._sums = np.zeros(len(inputs))
        self._found: list[tuple[np.ndarray, Tensor]] = []

    def add(self, text: np.ndarray, column: np.ndarray, target: Tensor, log_p: Tensor) -> None:
        """Note the loss of each predicted token."""
        self._found.append((text, -log_p.gather(1, target[:, None])[:, 0]))
        if self._own is not None:
            self._own.add(text, column, log_p.exp_())

    def finish(self, output: Any) -> None:
        """Add the batch's losses to their texts, which are brought to the CPU once."""
        super().finish(output)
        if self._found:
            text = np.concatenate([each for each, _ in self._found])
            losses = torch.cat([loss for _, loss in self._found]).cpu().double().numpy()
            self._sums += np.bincount(text, weights=losses, minlength=len(self._sums))
            self._found = []

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
        tokens = self.positions.sum(axis=1)
        bad = np.flatnonzero(~np.isfinite(self._sums))
        if len(bad):
            raise NonFiniteError(
                f"the loss of {self.name} is not finite in {len(bad)} of {len(tokens)} texts; "
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
                "objective": self.objective,
                "vocabulary": self.vocabulary,
            },
        )
