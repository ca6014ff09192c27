"""How a sparse autoencoder turns pre-activations into sparse codes, in training and afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

BANDWIDTH = 0.05  # of the straight-through estimates, in units of pre-activations
FIRST_THRESHOLD = 0.05


@dataclass
class Gate:
    """Base: codes from pre-activations (n, r)."""

    k: int
    alpha: float

    def parameters(self, like: Tensor) -> list[Tensor]:
        """Return further trained tensors."""
        return []

    def threshold(self, extra: list[Tensor], like: Tensor) -> Tensor:
        """Return what pre-activations must exceed after training, (1, r)."""
        return torch.zeros_like(like)

    def train(self, pre: Tensor, extra: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return codes and penalty."""
        raise NotImplementedError

    def infer(self, pre: Tensor, threshold: Tensor) -> Tensor:
        """Return codes of fitted pre-activations; every sample by itself."""
        return pre * (pre > threshold)


class Vanilla(Gate):
    """ReLU, L1 penalty."""

    def train(self, pre: Tensor, extra: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return codes and penalty."""
        codes = pre.relu()
        return codes, self.alpha * codes.sum(1).mean()


class TopK(Gate):
    """The k largest pre-activations of a sample, if positive (Gao et al. 2024)."""

    def train(self, pre: Tensor, extra: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return codes and penalty."""
        return self.infer(pre, pre), pre.new_zeros(())

    def infer(self, pre: Tensor, threshold: Tensor) -> Tensor:
        """Return codes of fitted pre-activations; every sample by itself."""
        top = torch.topk(pre, self.k, dim=1, sorted=False)
        return torch.zeros_like(pre).scatter(1, top.indices, top.values.relu())


@dataclass
class BatchTopK(Gate):
    """The k n largest positive pre-activations of a batch (Bussmann et al. 2024).

    Afterwards one threshold: the mean over late batches of the smallest code that was kept.
    """

    smallest: Tensor | None = None

    def threshold(self, extra: list[Tensor], like: Tensor) -> Tensor:
        """Return what pre-activations must exceed after training, (1, r)."""
        zero = torch.zeros_like(like)
        return zero if self.smallest is None else zero + self.smallest

    def train(self, pre: Tensor, extra: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return codes and penalty."""
        positive = pre.relu()
        limit = torch.topk(
            positive.detach().flatten(), self.k * len(pre), sorted=False
        )[0].amin()
        self.smallest = (
            limit if self.smallest is None else 0.9 * self.smallest + 0.1 * limit
        )
        return positive * (positive >= limit), pre.new_zeros(())


class JumpReLU(Gate):
    """A learned threshold for each concept, L0 penalty (Rajamanoharan et al. 2024)."""

    def parameters(self, like: Tensor) -> list[Tensor]:
        """Return further trained tensors."""
        return [torch.full_like(like, FIRST_THRESHOLD).log().detach().requires_grad_()]

    def threshold(self, extra: list[Tensor], like: Tensor) -> Tensor:
        """Return what pre-activations must exceed after training, (1, r)."""
        return extra[0].exp()

    def train(self, pre: Tensor, extra: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return codes and penalty."""
        threshold = extra[0].exp()
        positive = pre.relu()
        codes = _Jump.apply(positive, threshold)
        return codes, self.alpha * _Step.apply(positive, threshold).sum(1).mean()


class _Jump(torch.autograd.Function):
    """``x 1[x > t]``, with a pseudo-derivative for t by a rectangle kernel."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, t: Tensor) -> Tensor:
        ctx.save_for_backward(x, t)
        return x * (x > t)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        x, t = ctx.saved_tensors
        near = ((x - t).abs() < BANDWIDTH / 2) / BANDWIDTH
        return grad * (x > t), (-t * near * grad).sum(0, keepdim=True)


class _Step(torch.autograd.Function):
    """``1[x > t]``, with a pseudo-derivative for t only."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, t: Tensor) -> Tensor:
        ctx.save_for_backward(x, t)
        return (x > t).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        x, t = ctx.saved_tensors
        near = ((x - t).abs() < BANDWIDTH / 2) / BANDWIDTH
        return None, (-near * grad).sum(0, keepdim=True)


def gate_of(variant: str, k: int, alpha: float) -> Gate:
    """Return the gate of a variant by its name."""
    kinds = {
        "vanilla": Vanilla,
        "topk": TopK,
        "batchtopk": BatchTopK,
        "jumprelu": JumpReLU,
    }
    return kinds[variant](k, alpha)
