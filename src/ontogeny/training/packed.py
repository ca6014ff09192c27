"""Texts as one stream of tokens, from which batches of crops are cut at random places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor

from ..errors import ArgumentError, check_whole
from ..inputs.tokenize import count_ids
from .scrambling import scrambled_tokens

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class PackedTask:
    """What language modelling does with a stream; subclasses are data classes that hold it."""

    stream: Tensor
    length: int
    crops: int

    def scrambled(
        self, kind: str, random_state: int, tokenizer: PreTrainedTokenizerBase
    ) -> Self:
        """Return the same task on scrambled tokens; special tokens stay (`scrambled_tokens`)."""
        special = tokenizer.all_special_ids
        size = count_ids(tokenizer)
        ids = scrambled_tokens(
            self.stream, kind, random_state, vocab_size=size, keep=special
        )
        return replace(self, stream=ids)

    def places(self, generator: torch.Generator) -> Tensor:
        """Draw crops uniformly; return where their tokens stand in the stream, (crops, length)."""
        starts = torch.randint(
            len(self.stream) - self.length + 1, (self.crops, 1), generator=generator
        )
        return starts + torch.arange(self.length)


def packed_stream(
    texts: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    length: int,
    tokens_per_step: int,
    shortest: int,
) -> Tensor:
    """Return all texts as one stream of token ids; texts of special tokens only are left out.

    Parameters
    ----------
    texts, tokenizer, length, tokens_per_step
        As in `causal_language_modelling`.
    shortest
        Tokens that a crop needs at least.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or the texts are too short.
    """
    check_whole("length", length, shortest)
    if tokens_per_step < length or tokens_per_step % length:
        raise ArgumentError(
            f"tokens_per_step must be a multiple of length={length}; got {tokens_per_step}."
        )
    if isinstance(texts, str) or not texts:
        raise ArgumentError("texts must be a list with at least one text.")
    special = set(tokenizer.all_special_ids)
    # verbose=False: a text longer than the model is no fault here, it is cut into crops.
    rows = tokenizer(list(texts), verbose=False, return_attention_mask=False)[
        "input_ids"
    ]
    with_words = (row for row in rows if not special.issuperset(row))
    stream = list(chain.from_iterable(with_words))
    if len(stream) < length:
        raise ArgumentError(
            f"texts are too short: {len(stream)} tokens, and a crop has length={length}."
        )
    return torch.tensor(stream, dtype=torch.int64)


def entropy_of(tokens: Tensor) -> float:
    """Return the entropy of the frequencies of `tokens`, in nats.

    Examples
    --------
    >>> round(entropy_of(torch.tensor([0, 1, 0, 1])), 3)
    0.693
    """
    counts = torch.bincount(tokens).double().numpy()
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log(p)).sum())
