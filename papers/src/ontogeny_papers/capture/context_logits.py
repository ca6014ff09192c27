"""What a model predicts after fixed contexts: the logit matrix L of the theory of semantics."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from ontogeny.capture.forward import quiet, run
from ontogeny.capture.logits import LogitRows
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.inputs.batches import Batch


def context_logits(
    model: nn.Module,
    contexts: np.ndarray,
    word_ids: np.ndarray,
    *,
    left: np.ndarray | None = None,
    mask_token_id: int | None = None,
    batch_size: int = 256,
) -> np.ndarray:
    """Return the logits of chosen words after every context, (V, m) float32.

    A causal model reads a context alone and predicts the token after its last one. With `left` a
    masked model reads it with the mask token in its gap and predicts what stands there. Contexts
    of one length share batches, so nothing is padded.

    Parameters
    ----------
    model
        A language model; it is left as it was.
    contexts
        Token ids (m, longest), -1 after the end of a context.
    word_ids
        Token ids of the V words whose logits are kept.
    left
        How many tokens stand before the gap (m,); None for a causal model.
    mask_token_id
        Id of the mask token, needed with `left`.
    batch_size
        Contexts in one forward pass. It may change the last bits.

    Raises
    ------
    ArgumentError
        If a shape does not fit, a context is empty, an id is none of the model's tokens, or the
        model gives no logits.
    NonFiniteError
        If a logit is NaN or infinite.

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5))
    >>> contexts = np.array([[1, 2], [3, -1]])
    >>> context_logits(model, contexts, np.array([0, 4])).shape
    (2, 2)
    """
    ids, lengths = _checked(contexts, left, mask_token_id)
    chooser = LogitRows.of(model)
    words = torch.from_numpy(np.asarray(word_ids, dtype=np.int64))
    word_logits = np.empty((len(words), len(ids)), dtype=np.float32)
    with quiet(model), chooser.attached():
        for length in np.unique(lengths):
            alike = np.flatnonzero(lengths == length)
            for start in range(0, len(alike), batch_size):
                rows = alike[start : start + batch_size]
                read, at = _sequence(ids[rows, :length], rows, left, mask_token_id)
                batch = Batch(
                    rows, slice(0, read.shape[1]), read, np.ones(read.shape, bool)
                )
                chooser.choose(batch, np.arange(len(rows)), at)
                try:
                    logits = chooser.take(run(model, batch))
                except IndexError as error:
                    raise ArgumentError(
                        f"{type(model).__name__} cannot read contexts whose token ids go up to "
                        f"{int(read.max())}: {error}."
                    ) from None
                assert logits is not None  # every context has one position
                if logits.shape[1] <= int(words.max()):
                    raise ArgumentError(
                        f"word_ids go up to {int(words.max())}, but {type(model).__name__} gives "
                        f"logits of {logits.shape[1]} words."
                    )
                columns = logits.index_select(1, words.to(logits.device))
                word_logits[:, rows] = columns.float().cpu().numpy().T
    if not np.isfinite(word_logits).all():
        raise NonFiniteError(
            f"{type(model).__name__} gives logits that are NaN or infinite."
        )
    return word_logits


def _checked(
    contexts: np.ndarray, gaps: np.ndarray | None, mask_token_id: int | None
) -> tuple[np.ndarray, np.ndarray]:
    ids = np.asarray(contexts, dtype=np.int64)
    if ids.ndim != 2 or not len(ids):
        raise ArgumentError(
            f"contexts must be (m, longest) token ids; their shape is {ids.shape}."
        )
    lengths = (ids >= 0).sum(axis=1)
    if (lengths == 0).any():
        raise ArgumentError(f"context {int(lengths.argmin())} has no token.")
    if gaps is not None and mask_token_id is None:
        raise ArgumentError(
            "left puts a mask token into the contexts; give mask_token_id."
        )
    if gaps is not None and (gaps.shape != lengths.shape or (gaps > lengths).any()):
        raise ArgumentError(
            "left must give, for each context, how many of its tokens come first."
        )
    return ids, lengths


def _sequence(
    ids: np.ndarray,
    rows: np.ndarray,
    gaps: np.ndarray | None,
    mask_token_id: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return what the model reads, and the column that it predicts from."""
    if gaps is None:
        return ids, np.full(len(ids), ids.shape[1] - 1)
    at = gaps[rows]
    with_gap = np.empty((len(ids), ids.shape[1] + 1), dtype=np.int64)
    is_gap = np.arange(with_gap.shape[1]) == at[:, None]
    with_gap[is_gap] = mask_token_id
    with_gap[~is_gap] = ids.ravel()
    return with_gap, at
