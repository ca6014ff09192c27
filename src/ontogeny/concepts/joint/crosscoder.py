"""Crosscoders: codes from all checkpoints by one linear layer, a decoder for each checkpoint.

A crosscoder is a sparse autoencoder of the stacked activations ``[X_1 ... X_S]`` (n, S m), in
which a code counts by the *sum* of its decoders' norms over the checkpoints.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..gates import Gate, gate_of
from ..linalg import product
from ..sae import Autoencoder, train

EPOCHS, BATCH, LEARNING_RATE = 40, 512, 3e-3
ALPHA = 1e-2  # of the L1 variant: against the mean squared error, per unit of code times norm


class Crosscoder(Autoencoder):
    """Parameters of a crosscoder, whose gate and penalty see codes times norms of decoders."""

    def __init__(self, W: Tensor, gate: Gate, steps: int) -> None:
        super().__init__(W, W, torch.zeros_like(W[:1]), gate)
        self.steps = steps

    def size(self) -> Tensor:
        """Return the sum over checkpoints of the norms of the decoders, (1, r)."""
        blocks = self.W.reshape(self.steps, -1, self.W.shape[1])
        return torch.linalg.vector_norm(blocks, dim=1).sum(0, keepdim=True)

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return codes, reconstruction and penalty."""
        size = self.size()
        pre = (product(X - self.b, self.E) + self.c) * size
        sized, penalty = self.gate.train(pre, self.extra)
        codes = sized / size
        return codes, product(codes, self.W.mT) + self.b, penalty


def crosscoder_codes(Y: Tensor, steps: int, r: int, method: str, k: int, seed: int) -> Tensor:
    """Return the codes (n, r) of a crosscoder that is trained on the stack `Y` (n, S m).

    `method` is ``"batchtopk"`` (the k n largest of a batch) or ``"l1"`` (ReLU and an L1 penalty).
    """
    generator = torch.Generator().manual_seed(seed)
    unit = Y.square().mean().sqrt()
    X = Y / torch.where(unit > 0, unit, 1.0)
    gate = gate_of("vanilla" if method == "l1" else method, min(k, r), ALPHA / steps)
    chosen = torch.randperm(len(X), generator=generator)[torch.arange(r) % len(X)]
    W = X[chosen].mT + 0.1 * torch.randn(X.shape[1], r, generator=generator)
    model = Crosscoder(W / torch.linalg.vector_norm(W, dim=0, keepdim=True), gate, steps)
    model.match_size(X[:BATCH])
    train(model, X, EPOCHS, BATCH, LEARNING_RATE, generator)
    with torch.no_grad():
        size = model.size()
        pre = (product(X - model.b, model.E) + model.c) * size
        return gate.infer(pre, model.threshold())
