"""Word and context embeddings of a pretrained model, as the theory of semantics names them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from ontogeny.arrays import is_array, to_numpy
from ontogeny.capture.logits import head_path
from ontogeny.capture.outputs import ROUNDING, relative_change
from ontogeny.capture.shortcuts import activations
from ontogeny.capture.trial.first_look import changed_after
from ontogeny.errors import ArgumentError, check_choice
from ontogeny.inputs import Inputs

# Windows that the check of causality reads.
CHECKED = 4


@dataclass(frozen=True, eq=False)
class WordEmbeddings:
    """The rows of a vocabulary map that stand for words.

    Parameters
    ----------
    W
        Embeddings of shape (V, d), float32.
    ids
        Token id of each row, shape (V,).
    words
        Their tokens; the ids as text without a tokenizer.
    masked_rows
        Rows of the matrix beyond the tokenizer, which no text ever uses: left out.

    Examples
    --------
    >>> WordEmbeddings(
    ...     np.zeros((2, 3), np.float32), np.arange(2), ("a", "b"), 0
    ... ).W.shape
    (2, 3)
    """

    W: np.ndarray
    ids: np.ndarray
    words: tuple[str, ...]
    masked_rows: int


@dataclass(frozen=True, eq=False)
class ContextEmbeddings:
    """States of a causal model after contexts, from which it predicts the next token.

    Parameters
    ----------
    H
        Embeddings of shape (d, m), float32.
    ids
        Token ids of each context, shape (m, longest), -1 after its end.
    next_ids
        The token that followed it in its window, shape (m,); -1 where the window ends.

    Examples
    --------
    >>> H, ids = np.zeros((3, 1), np.float32), np.array([[5, -1]])
    >>> ContextEmbeddings(H, ids, np.array([7])).words(["x"] * 6)
    [('x',)]
    """

    H: np.ndarray
    ids: np.ndarray
    next_ids: np.ndarray

    def words(self, names: Any) -> list[tuple[str, ...]]:
        """Return the contexts as tuples of tokens; `names` gives the token of each id."""
        return [tuple(names[i] for i in row if i >= 0) for row in self.ids.tolist()]


def word_embeddings(
    model: nn.Module,
    tokenizer: Any = None,
    *,
    of: str = "decoder",
    keep: Callable[[str], bool] | None = None,
) -> WordEmbeddings:
    """Return the word embeddings W of a model.

    Parameters
    ----------
    model
        A transformers model.
    tokenizer
        Gives the tokens of the rows, and their number: vocabularies are often padded, and the
        rows of padding are random. Special tokens are left out.
    of
        ``"decoder"``, the map to the vocabulary, or ``"input"``, the embedding of input tokens.
        With tied weights they are the same.
    keep
        Which tokens to keep, such as ``str.isalpha``; word pieces and bytes otherwise fill groups.

    Raises
    ------
    ArgumentError
        If the model has no such matrix, or no token is kept.

    Notes
    -----
    Zhao and Thrampoulidis (2025), App. F.2. A decoder's bias is left out.

    Examples
    --------
    >>> import torch
    >>> class Tiny(nn.Module):
    ...     def get_output_embeddings(self):
    ...         return nn.Linear(3, 5)
    >>> word_embeddings(Tiny()).W.shape
    (5, 3)
    """
    check_choice("of", of, ("decoder", "input"))
    weight = _matrix(model, of)
    W = weight.detach().float().cpu().numpy()
    if tokenizer is None:
        if keep is not None:
            raise ArgumentError("keep chooses by token; give the tokenizer too.")
        return WordEmbeddings(W, np.arange(len(W)), tuple(map(str, range(len(W)))), 0)
    count = min(len(tokenizer), len(W))
    words = tokenizer.convert_ids_to_tokens(list(range(count)))
    special = set(getattr(tokenizer, "all_special_ids", ()))
    ids = np.array(
        [
            i
            for i, word in enumerate(words)
            if word is not None and i not in special and (keep is None or keep(word))
        ],
        dtype=np.int64,
    )
    if not len(ids):
        raise ArgumentError(f"keep leaves none of the {count} tokens.")
    return WordEmbeddings(W[ids], ids, tuple(words[i] for i in ids), len(W) - count)


def context_embeddings(
    model: nn.Module,
    windows: Any,
    lengths: tuple[int, int] = (1, 10),
    *,
    batch_size: int = 64,
) -> ContextEmbeddings:
    """Return the context embeddings H of a causal model: one pass gives all lengths of a window.

    The state after a window's first L tokens is that of the context of length L, because a causal
    model does not see what comes later.

    Parameters
    ----------
    model
        A causal language model. The state is what its vocabulary map is given.
    windows
        Token ids of shape (n, w), such as 50,000 sequences of 11 tokens.
    lengths
        Tokens in the shortest and the longest context.
    batch_size
        Windows in one forward pass.

    Returns
    -------
    ContextEmbeddings
        n contexts of every length, all lengths of a window together: m is n times their number.

    Raises
    ------
    ArgumentError
        If windows are shorter than the longest context, or the model is not causal.

    Notes
    -----
    Zhao and Thrampoulidis (2025), App. F.2: the state before the decoder, after the last
    norm.

    Examples
    --------
    ``H = context_embeddings(model, windows).H`` and ``W = word_embeddings(model, tokenizer).W`` are
    what :func:`ontogeny.semantics.embedding_concepts` takes.
    """
    ids = np.asarray(to_numpy(windows) if is_array(windows) else windows)
    shortest, longest = _checked(ids, lengths)
    path = head_path(model)
    if path is None:
        raise ArgumentError(
            f"{type(model).__name__} has no vocabulary map, so nothing is predicted from its "
            "contexts; load it with its language-model head (AutoModelForCausalLM)."
        )
    read = ids[:, :longest]
    _check_causal(model, read[:CHECKED], f"{path}#in")
    states = _states(model, read, f"{path}#in", batch_size)
    H = states[:, shortest - 1 :].reshape(-1, states.shape[2]).T
    sizes = np.tile(np.arange(shortest, longest + 1), len(ids))
    contexts = np.repeat(read, longest - shortest + 1, axis=0)
    after = np.pad(ids, ((0, 0), (0, 1)), constant_values=-1)[:, shortest : longest + 1]
    inside = np.arange(longest) < sizes[:, None]
    return ContextEmbeddings(H, np.where(inside, contexts, -1), after.reshape(-1))


def _matrix(model: nn.Module, of: str) -> torch.Tensor:
    name = "get_output_embeddings" if of == "decoder" else "get_input_embeddings"
    find = getattr(model, name, None)
    module = find() if callable(find) else None
    weight = getattr(module, "weight", None)
    if not isinstance(weight, torch.Tensor) or weight.ndim != 2:
        other = "; of='input' takes its token embedding" if of == "decoder" else ""
        raise ArgumentError(
            f"{type(model).__name__} has no {of} matrix of embeddings{other}."
        )
    return weight


def _checked(ids: np.ndarray, lengths: tuple[int, int]) -> tuple[int, int]:
    if ids.ndim != 2 or not np.issubdtype(ids.dtype, np.integer) or not len(ids):
        raise ArgumentError(
            f"windows must be integer ids of shape (n, w); got {ids.dtype} of shape {ids.shape}."
        )
    pair = isinstance(lengths, Sequence) and len(lengths) == 2
    if not pair or not 1 <= lengths[0] <= lengths[1]:
        raise ArgumentError(
            f"lengths must have 1 <= shortest <= longest; got {lengths!r}."
        )
    if ids.shape[1] < lengths[1]:
        raise ArgumentError(
            f"windows hold {ids.shape[1]} tokens; contexts of {lengths[1]} need as many."
        )
    return int(lengths[0]), int(lengths[1])


def _states(
    model: nn.Module, ids: np.ndarray, site: str, batch_size: int
) -> np.ndarray:
    inputs = Inputs.from_tokens(ids, mask=np.ones(ids.shape, dtype=bool))
    read = activations(
        model, inputs, site, max_tokens=None, batch_size=batch_size, device="cpu"
    )
    (states,) = read.values()
    return to_numpy(states).reshape(*ids.shape, -1)


def _check_causal(model: nn.Module, windows: np.ndarray, site: str) -> None:
    """Refuse a model whose state after a context depends on the tokens that follow.

    Both passes have the same shape, so that a causal model's states are equal to rounding.
    """
    other, half = changed_after(windows)
    first, second = (
        torch.from_numpy(_states(model, ids, site, len(ids))[:, :half])
        for ids in (windows, other)
    )
    apart = relative_change(first, second)
    if apart > ROUNDING:
        raise ArgumentError(
            f"{type(model).__name__} is not causal: its states after {half} tokens change by "
            f"{apart:.1%} with the tokens that follow. Contexts of one length need one pass each; "
            "take word_embeddings(model, of='input') of such a model."
        )
