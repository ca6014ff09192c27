"""Causal language modelling on a packed stream of tokens (Radford et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from .packed import PackedTask, entropy_of, packed_stream

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class CausalBatch:
    """Crops of which every token but the first is predicted from those before it.

    Parameters
    ----------
    ids
        Token ids, (texts, length) int64.
    """

    ids: Tensor

    def to(self, device: str | torch.device) -> CausalBatch:
        """Return the batch on `device`."""
        return CausalBatch(self.ids.to(device))

    def split(self, parts: int) -> list[tuple[CausalBatch, float]]:
        """Return batches of about equally many crops, each with its share of them.

        Examples
        --------
        >>> batch = CausalBatch(torch.arange(12).reshape(3, 4))
        >>> [(len(part.ids), round(share, 2)) for part, share in batch.split(2)]
        [(2, 0.67), (1, 0.33)]
        """
        pieces = [ids for ids in self.ids.tensor_split(parts) if len(ids)]
        return [(CausalBatch(ids), len(ids) / len(self.ids)) for ids in pieces]


@dataclass(frozen=True)
class CausalLanguageModelling(PackedTask):
    """A sampler of crops and their next-token loss; made by `causal_language_modelling`.

    Parameters
    ----------
    stream
        All texts one after the other with their begin and end tokens, (tokens,) int64.
    length
        Tokens in a crop.
    crops
        Crops in a batch.
    """

    @property
    def unigram_entropy(self) -> float:
        """Entropy of the frequencies of tokens, in nats: the loss without any context."""
        return entropy_of(self.stream)

    def sample(self, generator: torch.Generator) -> CausalBatch:
        """Draw crops at uniform places of the stream."""
        return CausalBatch(self.stream[self.places(generator)])

    def loss(self, model: nn.Module, batch: CausalBatch) -> Tensor:
        """Return the mean cross-entropy of the next tokens, in nats per token."""
        output = model(batch.ids)
        logits = output if isinstance(output, Tensor) else output.logits
        return cross_entropy(
            logits[:, :-1].flatten(0, 1).float(), batch.ids[:, 1:].flatten()
        )


def causal_language_modelling(
    texts: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    *,
    length: int = 128,
    tokens_per_step: int = 2048,
) -> CausalLanguageModelling:
    """Return the sampler and loss of next-token prediction on `texts`, for `train`.

    The texts are packed into one stream without padding, and every batch is cut from it at random
    places, so that a crop may hold the end of one text and the beginning of the next.

    Parameters
    ----------
    texts
        At least one; all together at least `length` tokens.
    tokenizer
        The special tokens that it adds to a text separate the texts.
    length
        Tokens in a crop, at least 2.
    tokens_per_step
        Tokens in a batch; a multiple of `length`.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or the texts are too short.

    Examples
    --------
    >>> from ontogeny.tasks import train_tokenizer
    >>> texts = ["the cat sat on the mat, and the dog sat on the cat"] * 8
    >>> tokenizer = train_tokenizer(texts, vocab_size=300)
    >>> task = causal_language_modelling(
    ...     texts, tokenizer, length=16, tokens_per_step=64
    ... )
    >>> task.sample(torch.Generator().manual_seed(0)).ids.shape
    torch.Size([4, 16])
    """
    stream = packed_stream(texts, tokenizer, length, tokens_per_step, shortest=2)
    return CausalLanguageModelling(stream, length, tokens_per_step // length)
