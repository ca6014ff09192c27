"""The loss of each text, in nats per predicted token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from ..errors import ArgumentError, NonFiniteError, check_choice
from ..inputs import Inputs
from .matching import MatchedWords
from .predicted import Listener, PredictionCollector
from .renaming import Calibration, RenamedWords


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
    for cls in type(model).__mro__:
        if shown := objective_of_class(cls.__name__):
            return shown
    raise ArgumentError(
        f"the class name {type(model).__name__} does not show what the model predicts; "
        "give objective='causal' (the next token) or objective='masked' (masked tokens)."
    )


def objective_of_class(name: str) -> str:
    """Return what the name of a model's class shows that it predicts; empty if it does not.

    Examples
    --------
    >>> objective_of_class("GPT2LMHeadModel"), objective_of_class("BertModel")
    ('causal', '')
    """
    if "MaskedLM" in name:
        return "masked"
    return "causal" if "CausalLM" in name or "LMHead" in name else ""


class LossCollector(PredictionCollector):
    """Cross-entropy of the predicted tokens, summed per text.

    Special tokens and padding are never predicted. With `of_model` it also tells what
    the means of the model's own predictions cost, and what the texts do with their words renamed.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Inputs,
        positions: np.ndarray | None = None,
        of_model: bool = False,
        listeners: Sequence[Listener] = (),
    ) -> None:
        super().__init__(model, inputs, positions, listeners)
        self._frequencies = (
            OwnFrequencies(inputs, self.positions, bool(self.shift))
            if of_model
            else None
        )
        self._renamed = RenamedWords(inputs, self.positions) if of_model else None
        self._matched = MatchedWords(inputs, self.positions) if of_model else None
        self._calibration = Calibration(len(inputs))
        self._sums = np.zeros(len(inputs))
        self._losses: list[tuple[np.ndarray, Tensor]] = []

    def add(
        self, text: np.ndarray, column: np.ndarray, target: Tensor, log_p: Tensor
    ) -> None:
        """Note the loss of each predicted token."""
        self._losses.append((text, -log_p.gather(1, target[:, None])[:, 0]))
        if self._frequencies and self._renamed and self._matched:
            self._renamed.add(text, column, log_p)
            self._matched.add(text, column, log_p)
            self._calibration.add(text, -self._losses[-1][1], log_p)
            self._frequencies.add(text, column, log_p.exp_())

    def finish(self, output: Any) -> None:
        """Add the batch's losses to their texts, which are brought to the CPU once."""
        super().finish(output)
        if self._losses:
            text = np.concatenate([texts for texts, _ in self._losses])
            losses = (
                torch.cat([loss for _, loss in self._losses]).cpu().double().numpy()
            )
            self._sums += np.bincount(text, weights=losses, minlength=len(self._sums))
            self._losses = []

    def result(self) -> xr.Dataset:
        """Return ``loss(text)`` in nats per predicted token and ``tokens(text)``, their number.

        A text without a predicted token has a loss of NaN and no tokens. ``own_unigram(text)`` and,
        of causal models, ``own_bigram(text)`` are what the means of the model's own predictions
        cost, where they were asked for (`OwnFrequencies`), and ``renamed(renaming)`` the mean loss
        with the words as they are, first, and consistently renamed (`RenamedWords`).
        ``calibrated(text)`` is the loss at the model's best temperature and
        ``inverse_temperature`` what its logits are multiplied by there (`Calibration`).
        ``matched(text)`` is what it costs to tell which word stands where, of
        ``matched_tokens(text)``, and ``matched_blind`` the same without a look (`MatchedWords`).
        Attributes hold the ``objective`` and ``vocabulary``, the number of tokens that the model
        gives a probability.

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
        loss = self._of_texts(self._sums)
        means = {} if self._frequencies is None else self._frequencies.of_texts()
        units = {"units": "nats per token"}
        values: dict[str, Any] = {
            "loss": ("text", loss, units),
            "tokens": ("text", tokens),
        }
        values |= {name: ("text", of, units) for name, of in means.items()}
        if self._renamed and self._matched:
            calibrated = self._of_texts(self._calibration.losses(self._sums))
            matched, matched_tokens, blind = self._matched.of_texts()
            values |= {
                "renamed": ("renaming", self._renamed.losses()),
                "calibrated": ("text", calibrated),
                "inverse_temperature": self._calibration.inverse_temperature(
                    self._sums
                ),
                "matched": ("text", matched),
                "matched_tokens": ("text", matched_tokens),
                "matched_blind": blind,
            }
        return xr.Dataset(
            values,
            coords={"text": np.arange(len(tokens))},
            attrs={"objective": self.objective, "vocabulary": self.vocabulary},
        )

    def _of_texts(self, sums: np.ndarray) -> np.ndarray:
        tokens = self.positions.sum(axis=1)
        return np.divide(
            sums, tokens, out=np.full(len(tokens), np.nan), where=tokens > 0
        )


_LEAST = float(np.finfo(np.float32).tiny)  # below it a probability is rounded to 0


class OwnFrequencies:
    """Sums a model's predictions over all places, and over those after the same token.

    The prediction at a place is part of its own mean. That makes the mean harder to beat: after a
    token that occurs once, the mean is the prediction.

    Parameters
    ----------
    inputs
        The texts.
    predicted
        (n, L) bool: the tokens that are predicted.
    pairs
        Whether to take means after each token as well, for models that predict the next token.
    """

    def __init__(self, inputs: Inputs, predicted: np.ndarray, pairs: bool) -> None:
        text, column = np.nonzero(predicted)
        self._place = np.cumsum(predicted.ravel()).reshape(predicted.shape) - 1
        self._text = text
        self._number = len(predicted)
        self._target = inputs.ids[text, column]
        self._sums = np.zeros(int(self._target.max(initial=-1)) + 1)
        self._after = (
            _AfterToken(inputs.ids[text, column - 1], self._target) if pairs else None
        )

    def add(self, text: np.ndarray, column: np.ndarray, probability: Tensor) -> None:
        """Add predictions (e, vocabulary) of the tokens at (text, column)."""
        total = probability[:, : len(self._sums)].sum(0, dtype=torch.float32)
        self._sums += total.cpu().numpy()
        if self._after is not None:
            self._after.add(self._place[text, column], probability)

    def of_texts(self) -> dict[str, np.ndarray]:
        """Return the mean loss (n,) of each text under the means, 0 without a predicted token."""
        mean = self._sums[self._target] / max(len(self._target), 1)
        costs = {"own_unigram": -np.log(np.maximum(mean, _LEAST))}
        if self._after is not None:
            costs["own_bigram"] = self._after.costs()
        number = np.maximum(np.bincount(self._text, minlength=self._number), 1)
        return {
            name: np.bincount(self._text, weights=cost, minlength=self._number) / number
            for name, cost in costs.items()
        }


class _AfterToken:
    """Sums predictions by the token before, of the targets that ever follow it.

    Every pair of a token and what follows it has one sum; those of one token stand together, so
    that the targets of a place are a range of pairs.
    """

    def __init__(self, before: np.ndarray, target: np.ndarray) -> None:
        size = int(target.max(initial=0)) + 1
        pairs, self._pair = np.unique(
            before.astype(np.int64) * size + target, return_inverse=True
        )
        self._targets = pairs % size
        _, self._of, self._count = np.unique(
            before, return_inverse=True, return_counts=True
        )
        _, self._start, self._length = np.unique(
            pairs // size, return_index=True, return_counts=True
        )
        self._sums = np.zeros(len(pairs))

    def add(self, place: np.ndarray, probability: Tensor) -> None:
        """Add the predictions at these places."""
        # Each place stands for several numbers, those of the tokens that ever follow its token:
        # they lie one after the other from `start` on, so ranges of different lengths are joined.
        of = self._of[place]
        length = self._length[of]
        row = np.repeat(np.arange(len(place)), length)
        within = np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length)
        pair = self._start[of][row] + within
        columns = (
            torch.from_numpy(part).to(probability.device)
            for part in (row, self._targets[pair])
        )
        values = probability[tuple(columns)].float().cpu().numpy()
        self._sums += np.bincount(pair, weights=values, minlength=len(self._sums))

    def costs(self) -> np.ndarray:
        """Return the loss of each token under the mean prediction after the token before it."""
        mean = self._sums[self._pair] / self._count[self._of]
        cost: np.ndarray = -np.log(np.maximum(mean, _LEAST))
        return cost
