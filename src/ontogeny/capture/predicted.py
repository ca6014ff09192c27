"""What a model predicts at every predicted token, reduced inside the pass: no logits are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import ArgumentError, NonFiniteError
from ..inputs import Inputs
from ..inputs.batches import Batch
from .collect import Collector
from .logits import LogitRows
from .trial.causality import check_causal, check_logits

# From text (e,), column (e,), token (e,) and log-probabilities (e, V) to numbers (e,) by name.
Reduction: TypeAlias = Callable[
    [np.ndarray, np.ndarray, Tensor, Tensor], Mapping[str, Any]
]

_TEXTS = 16  # of a batch, by default


def next_tokens(inputs: Inputs) -> np.ndarray:
    """Return (n, L) bool: the scored tokens that have a token before them to predict them."""
    positions = inputs.scored.copy()
    positions[:, 0] = False
    positions[:, 1:] &= inputs.mask[:, :-1]
    return positions


class Listener(Protocol):
    """Takes what it wants of the predictions of a pass."""

    def add(
        self, text: np.ndarray, column: np.ndarray, target: Tensor, log_p: Tensor
    ) -> None:
        """Take what is wanted of (e, vocabulary) log-probabilities of the tokens `target`."""


class PredictionCollector(Collector):
    """Hands the log-probabilities of predicted tokens to `add`, some rows at once.

    Predicted are the masked `positions`, or without them every ordinary token after a first one, by
    the tokens before it. Where the first batch shows that the model returns the output of its
    vocabulary map untouched, that map is afterwards given the predicting positions only, which
    saves most of its cost.

    Parameters
    ----------
    model
        A language model.
    inputs
        The texts.
    positions
        (n, L) bool: the tokens that a masked model predicts; None for the next token.
    listeners
        They are handed the same before `add`, and leave it as it is.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Inputs,
        positions: np.ndarray | None = None,
        listeners: Sequence[Listener] = (),
    ) -> None:
        self._listeners = listeners
        self.shift = 0
        if positions is not None:
            check_logits(model, inputs)
        else:
            check_causal(model, inputs)
            positions = next_tokens(inputs)
            self.shift = 1
        self.positions = positions
        self.vocabulary = 0
        self.name = type(model).__name__
        self._targets = inputs.ids
        self._logits = LogitRows.of(model, in_parts=True)
        width = inputs.ids.shape[1]
        if self._logits.is_large(_TEXTS * width):
            self._logits.learn(model, inputs)

    def add(
        self, text: np.ndarray, column: np.ndarray, target: Tensor, log_p: Tensor
    ) -> None:
        """Take what is wanted of (e, vocabulary) log-probabilities of the tokens `target`.

        They stand at (text, column). `log_p` may be changed in place. A collector that only hands
        them to its listeners takes nothing.
        """

    @property
    def objective(self) -> str:
        """``"causal"`` or ``"masked"``."""
        return "causal" if self.shift else "masked"

    def start(self, batch: Batch) -> set[str] | None:
        """Find the batch's predicted tokens and the rows that predict them."""
        row, column = np.nonzero(self.positions[batch.rows, batch.columns])
        self._batch = batch
        self._row = row
        self._column = column
        self._target = torch.from_numpy(
            self._targets[batch.rows, batch.columns][row, column]
        )
        self._logits.choose(batch, row, column - self.shift)
        return None if len(row) else set()

    def attached(self) -> AbstractContextManager[None]:
        """Watch the vocabulary map for as long as batches are fed."""
        return self._logits.attached()

    def finish(self, output: Any) -> None:
        """Hand the batch's predictions on.

        Raises
        ------
        ArgumentError
            If the model gives too few logits for the inputs' token ids.
        """
        text = self._batch.rows[self._row]
        column = np.arange(self.positions.shape[1])[self._batch.columns][self._column]
        for rows, logits in self._logits.parts(output):
            self._check_size(logits.shape[-1])
            target = self._target[rows].to(logits.device)
            log_p = logits.float().log_softmax(-1)
            for listener in (*self._listeners, self):
                listener.add(text[rows], column[rows], target, log_p)

    def _check_size(self, size: int) -> None:
        self.vocabulary = size
        if int(self._target.max()) >= size:
            raise ArgumentError(  # on a GPU the lookup would fail without a message
                f"{self.name} gives {size} logits, too few for the token id "
                f"{int(self._target.max())} of the inputs; is this its tokenizer?"
            )


class Reduced(Collector):
    """Gathers what a function makes of all predictions, as a listener in the pass of another.

    Parameters
    ----------
    name
        The model's name in messages.
    function
        See `ontogeny.capture.predictor.Predictor.reduced`.
    """

    def __init__(self, name: str, function: Reduction) -> None:
        self._name = name
        self._function = function
        self._pieces: list[dict[str, np.ndarray]] = []

    def add(
        self, text: np.ndarray, column: np.ndarray, target: Tensor, log_p: Tensor
    ) -> None:
        """Note what the function gives."""
        if bool(torch.isnan(log_p).any()):
            raise NonFiniteError(
                f"the logits of {self._name} are not finite at a predicted token."
            )
        numbers = self._function(text, column, target, log_p)
        plain = {
            name: value.cpu().numpy()
            if isinstance(value, Tensor)
            else np.asarray(value)
            for name, value in numbers.items()
        }
        self._pieces.append({"text": text, "column": column, **plain})

    def start(self, batch: Batch) -> set[str] | None:
        """Want nothing beside what the other wants."""
        return set()

    def finish(self, output: Any) -> None:
        """Wait for the next predictions."""

    def result(self) -> Any:
        """Return what the function makes of all numbers, see `ontogeny.needs.Reduced`."""
        return self._function.result(self.numbers())  # type: ignore[attr-defined]

    def numbers(self) -> dict[str, np.ndarray]:
        """Return all numbers by name, ordered by text and column.

        Raises
        ------
        ArgumentError
            If nothing is predicted.
        """
        if not self._pieces:
            raise ArgumentError(
                "inputs hold no token that is predicted; use longer texts."
            )
        whole = {
            name: np.concatenate([f[name] for f in self._pieces])
            for name in self._pieces[0]
        }
        order = np.lexsort((whole["column"], whole["text"]))
        return {name: values[order] for name, values in whole.items()}
