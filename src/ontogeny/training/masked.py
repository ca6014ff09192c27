"""Masked language modelling on a packed stream of tokens (Devlin et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..errors import ArgumentError, check_number
from .packed import PackedTask, entropy_of, packed_stream

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class MaskedBatch:
    """Crops in which some tokens are replaced by the mask token.

    Parameters
    ----------
    ids
        Token ids after masking, (texts, length) int64.
    positions
        Masked positions in the flattened `ids`, increasing, (k,) int64.
    targets
        Ids that stood there, (k,) int64.
    """

    ids: Tensor
    positions: Tensor
    targets: Tensor

    def to(self, device: str | torch.device) -> MaskedBatch:
        """Return the batch on `device`."""
        return MaskedBatch(
            self.ids.to(device), self.positions.to(device), self.targets.to(device)
        )

    def split(self, parts: int) -> list[tuple[MaskedBatch, float]]:
        """Return batches of equally many crops, each with its share of the masked tokens.

        A part in which nothing is masked is left out.

        Examples
        --------
        >>> ids = torch.arange(8).reshape(2, 4)
        >>> batch = MaskedBatch(ids, torch.tensor([1, 2, 6]), torch.tensor([0, 0, 0]))
        >>> [
        ...     (part.positions.tolist(), round(share, 2))
        ...     for part, share in batch.split(2)
        ... ]
        [([1, 2], 0.67), ([2], 0.33)]
        """
        parts_and_shares = []
        first = 0
        for ids in self.ids.tensor_split(parts):
            after = first + ids.numel()
            here = (self.positions >= first) & (self.positions < after)
            if here.any():
                part = MaskedBatch(
                    ids, self.positions[here] - first, self.targets[here]
                )
                parts_and_shares.append((part, float(here.double().mean())))
            first = after
        return parts_and_shares


@dataclass(frozen=True)
class MaskedLanguageModelling(PackedTask):
    """A sampler of masked crops and their loss; made by `masked_language_modelling`.

    Parameters
    ----------
    stream
        All texts one after the other with their begin and end tokens, (tokens,) int64.
    length
        Tokens in a crop.
    crops
        Crops in a batch.
    maskable
        Which tokens of the stream are ordinary and may be masked, (tokens,) bool.
    mask_id
        Id of the mask token.
    mask_fraction
        Share of the ordinary tokens of a batch that is masked.
    """

    maskable: Tensor
    mask_id: int
    mask_fraction: float

    @property
    def unigram_entropy(self) -> float:
        """Entropy of the frequencies of ordinary tokens, in nats.

        The loss of a model that knows how frequent every token is and sees no context: what a
        trained model has to beat.
        """
        return entropy_of(self.stream[self.maskable])

    def sample(self, generator: torch.Generator) -> MaskedBatch:
        """Draw crops at uniform places of the stream and mask a fixed share of their tokens."""
        index = self.places(generator).flatten()
        ids = self.stream[index]
        ordinary = self.maskable[index].nonzero().flatten()
        count = max(round(self.mask_fraction * len(ordinary)), 1)
        order = torch.randperm(len(ordinary), generator=generator)
        positions = ordinary[order[:count]].sort().values
        targets = ids[positions]
        ids[positions] = self.mask_id
        return MaskedBatch(ids.reshape(self.crops, self.length), positions, targets)

    def loss(self, model: nn.Module, batch: MaskedBatch) -> Tensor:
        """Return the mean cross-entropy at the masked positions, in nats per token."""
        return cross_entropy(masked_logits(model, batch).float(), batch.targets)


def masked_logits(model: nn.Module, batch: MaskedBatch) -> Tensor:
    """Return the logits at the masked positions of `batch`, (k, vocabulary).

    The output layer is most of the work of a small model, so where it is known to be all that
    follows the last hidden state it only sees the masked positions. Other models (a module that
    returns logits, or an object with ``logits``) compute all of them.
    """
    from transformers import EuroBertForMaskedLM  # which takes seconds to load

    if isinstance(model, EuroBertForMaskedLM):
        hidden = model.model(input_ids=batch.ids).last_hidden_state
        return model.lm_head(hidden.flatten(0, 1)[batch.positions])
    output = model(batch.ids)
    logits = output if isinstance(output, Tensor) else output.logits
    return logits.flatten(0, 1)[batch.positions]


def masked_language_modelling(
    texts: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    *,
    length: int = 64,
    tokens_per_step: int = 2048,
    mask_fraction: float = 0.15,
) -> MaskedLanguageModelling:
    """Return the sampler and loss of masked language modelling on `texts`, for `train`.

    The texts are packed into one stream without padding and every batch is cut from it at random
    places. Masked tokens are always replaced by the mask token; special tokens are never masked.

    Parameters
    ----------
    texts
        At least one; all together at least `length` tokens.
    tokenizer
        Must have a mask token; the special tokens it adds to a text separate the texts.
    length
        Tokens in a crop, at least 3 (so that every crop holds an ordinary token).
    tokens_per_step
        Tokens in a batch; a multiple of `length`.
    mask_fraction
        Share of the ordinary tokens of a batch that is masked, between 0 and 1.

    Raises
    ------
    ArgumentError
        If an argument is out of range, the texts are too short, or there is no mask token.

    Examples
    --------
    >>> from ontogeny.tasks import train_tokenizer
    >>> texts = ["the cat sat on the mat, and the dog sat on the cat"] * 8
    >>> tokenizer = train_tokenizer(texts, vocab_size=300)
    >>> task = masked_language_modelling(
    ...     texts, tokenizer, length=16, tokens_per_step=64
    ... )
    >>> batch = task.sample(torch.Generator().manual_seed(0))
    >>> (
    ...     batch.ids.shape,
    ...     bool((batch.ids.flatten()[batch.positions] == task.mask_id).all()),
    ... )
    (torch.Size([4, 16]), True)
    """
    check_number("mask_fraction", mask_fraction, 0, 1, above=True, below=True)
    if tokenizer.mask_token_id is None:
        raise ArgumentError("tokenizer has no mask token.")
    stream = packed_stream(texts, tokenizer, length, tokens_per_step, shortest=3)
    maskable = ~torch.isin(stream, torch.tensor(tokenizer.all_special_ids))
    return MaskedLanguageModelling(
        stream,
        length,
        tokens_per_step // length,
        maskable,
        tokenizer.mask_token_id,
        mask_fraction,
    )
