"""A small causal language model on real text: Python's own documentation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from ontogeny.errors import check_whole
from ontogeny.inputs import Inputs
from ontogeny.tasks import python_documentation, split_texts, train_tokenizer

from ..training import OptimizerSettings
from .seeded_run import SeededRun

if TYPE_CHECKING:
    from ..training.next_token_model import NextTokenForCausalLM

_TRAINING = 0x74657874
_ROW = 128  # tokens of the rows in which the training text is counted


@dataclass(frozen=True)
class TextRun(SeededRun):
    """One training of a causal transformer with MLPs on random crops of a text.

    Parameters
    ----------
    characters
        How much of Python's documentation is read, whole passages.
    vocab_size
        Largest number of tokens; few, so that the n-grams of the text are well known.
    length, batch_size, steps
        Tokens of a crop, crops of an update, updates.
    layers, width, heads
        Sizes of the `NextTokenForCausalLM`.
    optimizer
        `OptimizerSettings`.
    texts
        Held-out crops that are studied.

    Raises
    ------
    ArgumentError
        If a size is out of range.

    Examples
    --------
    >>> TextRun(steps=10).steps
    10
    """

    characters: int = 300_000
    vocab_size: int = 320
    length: int = 32
    batch_size: int = 32
    steps: int = 800
    layers: int = 2
    width: int = 64
    heads: int = 4
    optimizer: OptimizerSettings = field(
        default_factory=lambda: OptimizerSettings(learning_rate=2e-3)
    )
    texts: int = 96

    def __post_init__(self) -> None:
        for name in ("characters", "batch_size", "steps", "layers", "width", "heads", "texts"):
            check_whole(name, getattr(self, name))
        check_whole("length", self.length, 8)

    def model(self) -> NextTokenForCausalLM:
        """Return an untrained model, from PyTorch's random state."""
        from ..training.next_token_model import NextTokenConfig, NextTokenForCausalLM

        return NextTokenForCausalLM(
            NextTokenConfig(
                vocab_size=self.vocab_size,
                hidden_size=self.width,
                num_hidden_layers=self.layers,
                num_attention_heads=self.heads,
                max_position_embeddings=_ROW,
                use_mlp=True,
                attn_implementation="eager",
            )
        )

    def streams(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the tokens of the training text and of the text held out, one after the other."""
        return _streams(self.characters, self.vocab_size)

    def batches(self, seed: int) -> Callable[[int], Tensor]:
        """Return a function of the update, counted from 0, that returns its crops."""
        ids, _ = self.streams()
        places = np.arange(self.length)

        def batch(step: int) -> Tensor:
            rng = np.random.default_rng([_TRAINING, seed, step])
            begin = rng.integers(len(ids) - self.length, size=self.batch_size)
            return torch.from_numpy(ids[begin[:, None] + places])

        return batch

    def loss(self, model: nn.Module, batch: Tensor) -> Tensor:
        """Return the mean cross-entropy of the next tokens."""
        from ..training.next_token_model import next_token_loss

        return next_token_loss(model, batch)

    def inputs(self) -> dict[str, Inputs]:
        """Return ``held out`` crops, and the training text in rows, as it is counted."""
        train, other = self.streams()
        crops = other[: len(other) // self.length * self.length].reshape(-1, self.length)
        every = np.linspace(0, len(crops) - 1, min(self.texts, len(crops))).astype(int)
        rows = train[: len(train) // _ROW * _ROW].reshape(-1, _ROW)
        sets = {"held out": crops[every], "train": rows}
        return {
            name: Inputs.from_tokens(ids, vocab_size=self.vocab_size) for name, ids in sets.items()
        }


@lru_cache(maxsize=2)
def _streams(characters: int, vocab_size: int) -> tuple[np.ndarray, np.ndarray]:
    texts, total = [], 0
    for text in python_documentation():
        texts.append(text)
        total += len(text)
        if total >= characters:
            break
    parts = split_texts(texts, 0.1)
    # Whole passages are encoded and crops are cut from them: none is too long for the tokenizer.
    tokenizer = train_tokenizer(parts[0], vocab_size, max_length=characters)
    streams = [
        np.concatenate([tokenizer(text, add_special_tokens=False).input_ids for text in part])
        for part in parts
    ]
    return streams[0].astype(np.int64), streams[1].astype(np.int64)
