"""Texts in batches with little padding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import check_whole


@dataclass(frozen=True, eq=False)
class Batch:
    """Some texts of an input set, trimmed to the longest of them.

    Parameters
    ----------
    rows, columns
        (b,) which texts these are, and which columns of the input set.
    ids, mask
        (b, w) token ids and whether a position holds a token.
    """

    rows: np.ndarray
    columns: slice
    ids: np.ndarray
    mask: np.ndarray

    @property
    def first(self) -> np.ndarray:
        """(b,) column of each text's first token: zero unless padded on the left."""
        return self.mask.argmax(axis=1)

    @property
    def last(self) -> np.ndarray:
        """(b,) column of each text's last token."""
        return self.mask.shape[1] - 1 - self.mask[:, ::-1].argmax(axis=1)

    @property
    def position_ids(self) -> np.ndarray:
        """(b, w) positions counted from each text's first token; padding before it gets 0."""
        return np.maximum(np.cumsum(self.mask, axis=1, dtype=np.int64) - 1, 0)


def make_batch(
    ids: np.ndarray, mask: np.ndarray, padding_side: str, rows: np.ndarray
) -> Batch:
    """Return the texts `rows` as one batch, trimmed to the longest of them."""
    width = int(mask[rows].sum(axis=1).max(initial=0))
    columns = trimmed(mask.shape[1], width, padding_side)
    return Batch(rows, columns, ids[rows, columns], mask[rows, columns])


def make_batches(
    ids: np.ndarray, mask: np.ndarray, padding_side: str, batch_size: int
) -> list[Batch]:
    """Return the texts in batches, longest first; texts of equal length keep their order."""
    check_whole("batch_size", batch_size)
    order = np.argsort(-mask.sum(axis=1), kind="stable")
    starts = range(0, len(order), batch_size)
    return [
        make_batch(ids, mask, padding_side, order[i : i + batch_size]) for i in starts
    ]


def trimmed(total: int, width: int, padding_side: str) -> slice:
    """Return the `width` columns of `total` that padding leaves."""
    return slice(0, width) if padding_side == "right" else slice(total - width, total)
