"""A small causal language model on running words, with a weight for every word's loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from ontogeny.errors import ArgumentError

from .contexts import ContextTask


@dataclass(frozen=True, eq=False)
class RunningTask:
    """Random crops of running words, and the loss of the words that follow: for `record_logits`.

    Parameters
    ----------
    ids
        The text (n,) as words 0 to V − 1, negative where another word or the end of a text stands.
        Those are seen as one further word V, and are not predicted.
    contexts
        Contexts (m, longest) after which `logits` are read, -1 after their end.
    words
        V.
    weights
        Weight of each word's loss (n,), not negative; 1 each by default.
    length, batch_size
        Words in a crop, and crops in a batch.

    Raises
    ------
    ArgumentError
        If a crop is longer than the text.

    Examples
    --------
    >>> task = RunningTask(
    ...     np.array([0, 1] * 9), np.array([[0], [1]]), 2, length=4, batch_size=3
    ... )
    >>> [tuple(batch.shape) for batch in task.sample(torch.Generator())]
    [(3, 5), (3, 5)]
    """

    ids: np.ndarray
    contexts: np.ndarray
    words: int
    weights: np.ndarray | None = None
    length: int = 16
    batch_size: int = 32

    def __post_init__(self) -> None:
        if len(self.ids) <= self.length:
            raise ArgumentError(
                f"ids must hold more than {self.length} words; got {len(self.ids)}."
            )

    @cached_property
    def _stream(self) -> tuple[Tensor, Tensor]:
        is_word = self.ids >= 0
        weights = np.ones(len(self.ids)) if self.weights is None else self.weights
        ids = torch.from_numpy(np.where(is_word, self.ids, self.words).astype(np.int64))
        return ids, torch.from_numpy((weights * is_word).astype(np.float32))

    def sample(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw a batch: words and weights, (batch_size, length + 1) each."""
        last = len(self.ids) - self.length
        start = torch.randint(last, (self.batch_size, 1), generator=generator)
        return self.crops(start)

    def crops(self, start: Tensor) -> tuple[Tensor, Tensor]:
        """Return words and weights of the crops that begin at `start` (n, 1)."""
        at = start + torch.arange(self.length + 1)
        ids, weights = self._stream
        return ids[at], weights[at]

    def loss(self, model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Return the weighted mean loss of the words that are predicted, in nats."""
        ids, weights = batch
        logits = model(input_ids=ids[:, :-1]).logits[..., : self.words]
        target = ids[:, 1:]
        weight = weights[:, 1:]
        is_word = target < self.words
        losses = nn.functional.cross_entropy(
            logits[is_word], target[is_word], reduction="none"
        )
        return (losses * weight[is_word]).sum() / is_word.sum()

    @torch.no_grad()
    def text_loss(self, model: nn.Module) -> float:
        """Return the mean loss over the whole text, each word once and with its weight."""
        starts = torch.arange(0, len(self.ids) - self.length, self.length)[:, None]
        sums = torch.zeros(2, dtype=torch.float64)
        for part in starts.split(256):
            batch = self.crops(part)
            words = int((batch[0][:, 1:] < self.words).sum())
            if words:
                sums += torch.tensor([float(self.loss(model, batch)) * words, words])
        return float(sums[0] / sums[1])

    def logits(self, model: nn.Module) -> np.ndarray:
        """Return the logits of the V words after every context, (V, m) float32."""
        targets = np.full((self.words, len(self.contexts)), 1 / self.words)
        return ContextTask(self.contexts, targets).logits(model)


def rows_of(ids: np.ndarray, ids_of: np.ndarray, words: int) -> np.ndarray:
    """Return a text of `words` words (n,) as places in `ids_of`, -1 for other and negative ids.

    Examples
    --------
    >>> rows_of(np.array([2, 0, -1, 1]), np.array([2, 1]), 3)
    array([ 0, -1, -1,  1])
    """
    row = np.full(words + 1, -1)  # its last place is that of negative ids
    row[ids_of] = np.arange(len(ids_of))
    return row[np.maximum(ids, -1)]
