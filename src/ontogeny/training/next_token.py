"""Next-token prediction on a packed stream of tokens: a sampler and a loss for `train`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..errors import ArgumentError
from .masked import packed

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["NextTokenModelling", "next_token_modelling"]


@dataclass(frozen=True)
class NextTokenModelling:
    """A sampler of crops and their next-token loss; made by `next_token_modelling`.

    Parameters
    ----------
    stream
        All texts one after the other, (tokens,) int64.
    length
        Tokens in a crop.
    crops
        Crops in a batch.
    """

    stream: Tensor
    length: int
    crops: int

    def sample(self, generator: torch.Generator) -> Tensor:
        """Draw crops at uniform places of the stream, (crops, length) int64."""
        places = len(self.stream) - self.length + 1
        starts = torch.randint(places, (self.crops, 1), generator=generator)
        return self.stream[starts + torch.arange(self.length)]

    def loss(self, model: nn.Module, batch: Tensor) -> Tensor:
        """Return the mean cross-entropy of every token after the first, in nats."""
        output = model(batch)
        logits = output if isinstance(output, Tensor) else output.logits
        return cross_entropy(logits[:, :-1].flatten(0, 1).float(), batch[:, 1:].flatten())


def next_token_modelling(
    texts: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    *,
    length: int = 32,
    tokens_per_step: int = 1024,
) -> NextTokenModelling:
    """Return the sampler and loss of next-token prediction on `texts`.

    Parameters
    ----------
    texts
        At least one; all together at least `length` tokens.
    tokenizer
        The special tokens it adds to a text part the texts.
    length
        Tokens in a crop, at least 2.
    tokens_per_step
        Tokens in a batch; a multiple of `length`.

    Raises
    ------
    ArgumentError
        If an argument is out of range or the texts are too short.

    Examples
    --------
    >>> from ontogeny.tasks import train_tokenizer
    >>> texts = ["the cat sat on the mat, and the dog sat on the cat"] * 8
    >>> tokenizer = train_tokenizer(texts, vocab_size=300)
    >>> task = next_token_modelling(texts, tokenizer, length=8, tokens_per_step=32)
    >>> task.sample(torch.Generator().manual_seed(0)).shape
    torch.Size([4, 8])
    """
    if length < 2:
        raise ArgumentError(f"length must be at least 2; got {length}.")
    if tokens_per_step < length or tokens_per_step % length:
        raise ArgumentError(
            f"tokens_per_step must be a multiple of length={length}; got {tokens_per_step}."
        )
    stream = packed(texts, tokenizer, tokenizer.all_special_ids)
    if len(stream) < length:
        raise ArgumentError(
            f"texts are too short: {len(stream)} tokens, and a crop has length={length}."
        )
    return NextTokenModelling(stream, length, tokens_per_step // length)
