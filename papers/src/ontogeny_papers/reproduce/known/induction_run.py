"""A two-layer attention-only transformer on repeated sequences of random tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from ontogeny.errors import ArgumentError, check_whole
from ontogeny.features.circuits.sequences import random_sequences
from ontogeny.inputs import Inputs

from ..training import OptimizerSettings
from .seeded_run import SeededRun

if TYPE_CHECKING:
    from ..training.next_token_model import NextTokenForCausalLM

_TRAINING, _TESTING = 0x696E6475, 0x74657374


@dataclass(frozen=True)
class InductionRun(SeededRun):
    """One training on random tokens that are repeated, with a period that differs by batch.

    The period is drawn between a third and a half of the length. With a fixed one a head could
    find the earlier copy by its distance, without looking for the token.

    Parameters
    ----------
    vocab_size, length
        Token ids, at least as many as `length`; tokens of a sequence.
    layers, width, heads
        Sizes of the `NextTokenForCausalLM`, which has no MLPs.
    steps, batch_size
        Updates, and sequences of each.
    optimizer
        `OptimizerSettings`.
    texts
        Sequences of each kind that are studied.

    Raises
    ------
    ArgumentError
        If a size is out of range.

    Examples
    --------
    >>> InductionRun(length=12).batches(0)(0).shape
    torch.Size([64, 12])
    """

    vocab_size: int = 32
    length: int = 24
    layers: int = 2
    width: int = 64
    heads: int = 2
    steps: int = 500
    batch_size: int = 64
    optimizer: OptimizerSettings = field(
        default_factory=lambda: OptimizerSettings(learning_rate=2e-3, schedule="constant")
    )
    texts: int = 128

    def __post_init__(self) -> None:
        for name in ("layers", "width", "heads", "steps", "batch_size", "texts"):
            check_whole(name, getattr(self, name))
        check_whole("length", self.length, 12)
        if self.vocab_size < self.length:
            raise ArgumentError(
                f"vocab_size must be at least the length, so that sequences without repetition "
                f"exist; got {self.vocab_size} for {self.length}."
            )

    def model(self) -> NextTokenForCausalLM:
        """Return an untrained model, from PyTorch's random state."""
        from ..training.next_token_model import NextTokenConfig, NextTokenForCausalLM

        return NextTokenForCausalLM(
            NextTokenConfig(
                vocab_size=self.vocab_size,
                hidden_size=self.width,
                num_hidden_layers=self.layers,
                num_attention_heads=self.heads,
                max_position_embeddings=self.length,
                attn_implementation="eager",
            )
        )

    def batches(self, seed: int) -> Callable[[int], Tensor]:
        """Return a function of the update, counted from 0, that returns its sequences."""

        def batch(step: int) -> Tensor:
            rng = np.random.default_rng([_TRAINING, seed, step])
            period = int(rng.integers(self.length // 3, self.length // 2 + 1))
            once = rng.integers(self.vocab_size, size=(self.batch_size, period))
            times = -(-self.length // period)
            return torch.from_numpy(np.tile(once, (1, times))[:, : self.length].copy())

        return batch

    def loss(self, model: nn.Module, batch: Tensor) -> Tensor:
        """Return the mean cross-entropy of the next tokens."""
        from ..training.next_token_model import next_token_loss

        return next_token_loss(model, batch)

    def inputs(self) -> dict[str, Inputs]:
        """Return ``repeated`` sequences of half the length, and ``unrepeated`` ones."""
        tokens = np.arange(self.vocab_size)
        pair = random_sequences(tokens, self.texts, self.length // 2, _TESTING)
        return {
            name: Inputs.from_tokens(ids, vocab_size=self.vocab_size)
            for name, ids in zip(("repeated", "unrepeated"), pair, strict=True)
        }
