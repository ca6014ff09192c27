"""A one-layer transformer on addition modulo a small prime, from a part of all pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ontogeny.inputs import Inputs

from ..training import OptimizerSettings
from .known_recipe import KnownRun

if TYPE_CHECKING:
    from ..training.readout_model import ReadoutTransformer

_SPLIT = 0x6D6F6475


@dataclass(frozen=True)
class ModularRun(KnownRun):
    """One training on a + b modulo n, on all training pairs at every step.

    A text is a, b and an "equals" token, and the answer is read at the last. A pair (a, b) and its
    mirror (b, a) are on one side of the split, so that no held-out answer follows from exchanging
    the two.

    Parameters
    ----------
    modulus
        n; the numbers are the token ids 0 to n − 1.
    share
        Share of the pairs that is trained on, mirrors counted once, between 0 and 1.
    layers, width, heads
        Sizes of the `ReadoutTransformer`, which has MLPs.
    steps
        Updates.
    optimizer
        `OptimizerSettings`; the weight decay is what drives grokking.
    split
        Seed of the split, the same for all seeds of a run.

    Examples
    --------
    >>> run = ModularRun(modulus=5)
    >>> ids, answers = run.pairs(trained=True)
    >>> bool((ids[:, :2].sum(1) % 5 == answers).all())
    True
    """

    modulus: int = 29
    share: float = 0.8
    layers: int = 1
    width: int = 64
    heads: int = 4
    steps: int = 2500
    optimizer: OptimizerSettings = field(
        default_factory=lambda: OptimizerSettings(
            learning_rate=2e-3, schedule="constant", weight_decay=1.0
        )
    )
    split: int = 0

    def model(self) -> ReadoutTransformer:
        """Return an untrained model, from PyTorch's random state."""
        from ..training.readout_model import ReadoutConfig, ReadoutTransformer

        return ReadoutTransformer(
            ReadoutConfig(
                vocab_size=self.modulus + 1,
                hidden_size=self.width,
                num_hidden_layers=self.layers,
                num_attention_heads=self.heads,
                max_position_embeddings=3,
                use_mlp=True,
                num_labels=self.modulus,
                attn_implementation="eager",
            )
        )

    def pairs(self, trained: bool) -> tuple[Tensor, Tensor]:
        """Return texts (n, 3) and answers (n,) of the trained or of the held-out pairs."""
        n = self.modulus
        first, second = np.triu_indices(n)
        is_drawn = np.zeros((n, n), dtype=bool)
        order = np.random.default_rng([_SPLIT, self.split]).permutation(len(first))
        pairs = order[: round(self.share * len(first))]
        is_drawn[first[pairs], second[pairs]] = True
        first, second = np.nonzero((is_drawn | is_drawn.T) == trained)
        ids = np.stack([first, second, np.full(len(first), n)], axis=1)
        return torch.from_numpy(ids), torch.from_numpy((first + second) % n)

    def batches(self, seed: int) -> Callable[[int], tuple[Tensor, Tensor]]:
        """Return a function of the update that returns all training pairs, at every one."""
        whole = self.pairs(trained=True)
        return lambda step: whole

    def loss(self, model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Return the mean cross-entropy of the answers."""
        ids, answers = batch
        return cross_entropy(model(ids, readout_only=True).logits, answers)

    def inputs(self) -> dict[str, Inputs]:
        """Return the pairs that are ``trained`` and those ``held out``, with their answers."""
        return {
            name: _inputs(*self.pairs(trained), self.modulus + 1)
            for name, trained in (("trained", True), ("held out", False))
        }


def _inputs(ids: Tensor, answers: Tensor, vocab_size: int) -> Inputs:
    return Inputs.from_tokens(
        ids.numpy(), labels=answers.numpy(), vocab_size=vocab_size
    )
