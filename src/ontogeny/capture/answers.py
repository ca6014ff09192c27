"""Takes probabilities, ranks and the likeliest answers at chosen tokens out of forward passes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from ..errors import ArgumentError, NonFiniteError
from ..inputs.batches import Batch
from .collect import Collector
from .logits import LogitRows

_ROWS_AT_ONCE = 256  # bounds the copies of logits that a softmax and a sort make


class AtTokens(Collector):
    """Takes probabilities, ranks and answers at tokens (row, column) out of forward passes."""

    def __init__(
        self,
        model: nn.Module,
        row: np.ndarray,
        column: np.ndarray,
        right: np.ndarray,
        top: int,
    ) -> None:
        self._name = type(model).__name__
        self._logits = LogitRows.of(model)
        self._row = row
        self._column = column
        self._right = right
        self._top = top
        count = len(row)
        self._log_p = np.zeros(count)
        self._rank = np.zeros(count, dtype=np.int64)
        self._answer = np.zeros((count, top), dtype=np.int64)
        self._answer_log_p = np.zeros((count, top))
        self._vocabulary = 0

    def start(self, batch: Batch) -> set[str] | None:
        """Find the batch's tokens."""
        local = np.full(int(max(self._row.max(), batch.rows.max())) + 1, -1)
        local[batch.rows] = np.arange(len(batch.rows))
        self._of_batch = np.flatnonzero(local[self._row] >= 0)
        column = self._column[self._of_batch] - batch.columns.start
        self._logits.choose(batch, local[self._row[self._of_batch]], column)
        return None if len(self._of_batch) else set()

    def attached(self) -> AbstractContextManager[None]:
        """Watch the vocabulary map for as long as batches are fed."""
        return self._logits.attached()

    def finish(self, output: Any) -> None:
        """Read the batch's tokens."""
        logits = self._logits.take(output)
        if logits is None:
            return
        self._vocabulary = logits.shape[-1]
        if self._top > self._vocabulary:
            raise ArgumentError(
                f"top must be at most {self._vocabulary}, the number of tokens that {self._name} "
                f"gives a probability; got {self._top}."
            )
        for start in range(0, len(logits), _ROWS_AT_ONCE):
            at = self._of_batch[start : start + _ROWS_AT_ONCE]
            self._read(at, logits[start : start + _ROWS_AT_ONCE])

    def _read(self, at: np.ndarray, logits: Tensor) -> None:
        wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
        log_p = torch.log_softmax(logits.to(wide), dim=-1)
        if bool(torch.isnan(log_p).any()):
            raise NonFiniteError(
                f"the logits of {self._name} are not finite at a chosen token."
            )
        right = torch.from_numpy(self._right[at]).to(logits.device)[:, None]
        log_p_right = log_p.gather(1, right)
        token = torch.arange(log_p.shape[1], device=logits.device)
        ahead = (log_p > log_p_right) | ((log_p == log_p_right) & (token < right))
        self._log_p[at] = log_p_right[:, 0].double().cpu().numpy()
        self._rank[at] = 1 + ahead.sum(dim=1).cpu().numpy()
        if self._top:
            values, ids = _likeliest(log_p, self._top)
            self._answer[at] = ids.cpu().numpy()
            self._answer_log_p[at] = values.double().cpu().numpy()

    def result(self) -> xr.Dataset:
        """Return what was read, see `Predictor.at`."""
        answers = ("target", "answer")
        return xr.Dataset(
            {
                "right_id": ("target", self._right),
                "right_log_probability": ("target", self._log_p, {"units": "nats"}),
                "right_rank": ("target", self._rank),
                "answer_id": (answers, self._answer),
                "answer_log_probability": (
                    answers,
                    self._answer_log_p,
                    {"units": "nats"},
                ),
            },
            attrs={"vocabulary": self._vocabulary},
        )


def _likeliest(log_p: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """Return the largest values of each row and their places; of equal ones the first.

    A whole vocabulary is sorted only where a value is equal to the last of them.

    Examples
    --------
    >>> _likeliest(torch.tensor([[0.0, 2.0, 1.0, 2.0], [3.0, 3.0, 3.0, 0.0]]), 2)[
    ...     1
    ... ].tolist()
    [[1, 3], [0, 1]]
    """
    values, ids = log_p.topk(top, dim=1)
    tied = (log_p >= values[:, -1:]).sum(dim=1) > top
    ids = ids.sort(dim=1).values
    values, order = log_p.gather(1, ids).sort(dim=1, descending=True, stable=True)
    ids = ids.gather(1, order)
    if bool(tied.any()):
        sorted_values, places = log_p[tied].sort(dim=1, descending=True, stable=True)
        values[tied] = sorted_values[:, :top]
        ids[tied] = places[:, :top]
    return values, ids
