"""Text from which less can be learned: tokens in random order, or random tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, TypeVar, overload

import numpy as np
import torch
from torch import Tensor

from ..errors import ArgumentError, check_choice, check_iterable, check_whole

# What is left to learn: how frequent every token is, or nothing.
SCRAMBLED = ("frequencies", "nothing")

Ids = TypeVar("Ids", Tensor, np.ndarray)


@overload
def scrambled_tokens(
    ids: Ids,
    kind: str,
    random_state: int = ...,
    *,
    vocab_size: int | None = ...,
    keep: Iterable[int] = ...,
) -> Ids: ...
@overload
def scrambled_tokens(
    ids: Sequence[Any],
    kind: str,
    random_state: int = ...,
    *,
    vocab_size: int | None = ...,
    keep: Iterable[int] = ...,
) -> list[Any]: ...
def scrambled_tokens(
    ids: Any,
    kind: str,
    random_state: int = 0,
    *,
    vocab_size: int | None = None,
    keep: Iterable[int] = (),
) -> Any:
    """Return token ids of the same shape from which a model can learn less.

    Give all ids that a run trains on in one call: tokens that stay within their text or batch
    still tell which words occur together. Then train on the result as on the text itself, from
    the same seed. What the run shows beyond such a control was learned from what is missing here.

    Parameters
    ----------
    ids
        A tensor or array of any shape, a list of ids, or a list with the ids of each text.
    kind
        ``"frequencies"`` puts the tokens in random order over all texts, so that only their
        frequencies are left. ``"nothing"`` draws every token anew, all equally likely.
    random_state
        Seed.
    vocab_size
        For ``"nothing"``: ids are drawn from 0 to ``vocab_size - 1``, without `keep`.
    keep
        Ids that stay where they are and are never drawn, such as ``tokenizer.all_special_ids``.

    Returns
    -------
    torch.Tensor, numpy.ndarray or list
        As `ids`, a copy.

    Raises
    ------
    ArgumentError
        If an argument is not as described, an id is out of range, or no id is left to draw.

    Examples
    --------
    >>> scrambled_tokens([[1, 5, 6, 2], [1, 7, 2]], "frequencies", keep=[1, 2])
    [[1, 7, 5, 2], [1, 6, 2]]
    >>> tokens = scrambled_tokens(np.zeros(1000, int), "nothing", vocab_size=4)
    >>> sorted(set(tokens.tolist()))
    [0, 1, 2, 3]
    """
    check_choice("kind", kind, SCRAMBLED)
    rng = np.random.default_rng(check_whole("random_state", random_state, 0))
    flat = _flat(ids)
    protected = _protected_ids(keep)
    free = ~np.isin(flat, protected)
    if kind == "frequencies":
        flat[free] = rng.permutation(flat[free])
    else:
        flat[free] = rng.choice(
            _candidates(vocab_size, protected, flat[free]), int(free.sum())
        )
    return _like(ids, flat)


def _protected_ids(keep: Iterable[int]) -> np.ndarray:
    """Return the ids that stay, increasing, (k,) int64; they may be negative."""
    ids = set(check_iterable("keep", keep, "token ids"))
    if odd := [entry for entry in ids if not isinstance(entry, Integral)]:
        raise ArgumentError(f"keep must hold whole numbers; got {odd[0]!r}.")
    return np.array(sorted(ids), dtype=np.int64)


def _candidates(
    vocab_size: int | None, tokens: np.ndarray, replaced: np.ndarray
) -> np.ndarray:
    """Return the ids that are drawn instead of those `replaced`."""
    if vocab_size is None:
        raise ArgumentError(
            'kind="nothing" draws from the whole vocabulary; give vocab_size.'
        )
    size = check_whole("vocab_size", vocab_size)
    outside = replaced[(replaced < 0) | (replaced >= size)]
    if outside.size:
        raise ArgumentError(f"vocab_size is {size}, but ids has the id {outside[0]}.")
    candidates = np.setdiff1d(np.arange(size), tokens)
    if not candidates.size:
        raise ArgumentError(
            f"keep holds all {size} ids of the vocabulary; none is left to draw."
        )
    return candidates


def _flat(ids: Any) -> np.ndarray:
    """Return all ids one after the other, a copy, (tokens,) int64."""
    if isinstance(ids, Tensor):
        ids = ids.detach().cpu().numpy()
    if isinstance(ids, list | tuple) and ids and not np.isscalar(ids[0]):
        rows = [np.asarray(row) for row in ids]
        if any(row.ndim != 1 for row in rows):
            raise ArgumentError(
                "ids must be a list of ids, or a list with a list of ids per text."
            )
        values = np.concatenate(
            [row for row in rows if row.size] or [np.zeros(0, np.int64)]
        )
    else:
        values = np.asarray(ids).reshape(-1)
    if values.size and values.dtype.kind not in "iu":
        raise ArgumentError(f"ids must be whole numbers; got {values.dtype}.")
    return values.astype(np.int64)  # a copy


def _like(ids: Any, flat: np.ndarray) -> Any:
    if isinstance(ids, Tensor):
        return torch.from_numpy(flat).reshape(ids.shape).to(ids.device, ids.dtype)
    if isinstance(ids, np.ndarray):
        return flat.reshape(ids.shape).astype(ids.dtype)
    if ids and not np.isscalar(ids[0]):
        ends = np.cumsum([len(row) for row in ids])
        return [part.tolist() for part in np.split(flat, ends[:-1])]
    return flat.tolist()
