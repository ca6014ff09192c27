"""Several models of one architecture as one module, and how their weights are updated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.optim import SGD, AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR
from torch.utils import _pytree as pytree

from ontogeny.errors import ArgumentError, check_choice
from ontogeny.training.loop import Loss

from ...updates.field import LossOf


@dataclass(frozen=True)
class OptimizerSettings:
    """How weights are updated.

    Parameters
    ----------
    kind
        ``"adamw"`` (all parameters decayed, as PyTorch's default does) or ``"sgd"``.
    learning_rate
        At the first step.
    schedule
        ``"cosine"`` (falls to zero at the last step) or ``"constant"``.
    betas, weight_decay
        Of AdamW.
    momentum
        Of SGD.

    Examples
    --------
    >>> OptimizerSettings("sgd", 0.1).schedule
    'cosine'
    """

    kind: str = "adamw"
    learning_rate: float = 1e-3
    schedule: str = "cosine"
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.01
    momentum: float = 0.0

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, ("adamw", "sgd"))
        check_choice("schedule", self.schedule, ("cosine", "constant"))
        if not self.learning_rate > 0:
            raise ArgumentError(
                f"learning_rate must be positive; got {self.learning_rate}."
            )

    def build(
        self, module: nn.Module, steps: int, start: int
    ) -> tuple[Optimizer, LambdaLR]:
        """Return the optimizer and its schedule, which is at step `start`."""
        rate = self.learning_rate
        parameters = list(module.parameters())
        optimizer: Optimizer
        if self.kind == "adamw":
            optimizer = AdamW(
                parameters,
                rate,
                betas=self.betas,
                weight_decay=self.weight_decay,
                fused=True,
            )
        else:
            optimizer = SGD(parameters, rate, momentum=self.momentum)
        cosine = self.schedule == "cosine"

        def share(step: int) -> float:
            done = (step + start) / steps
            return (1 + math.cos(math.pi * min(done, 1))) / 2 if cosine else 1.0

        return optimizer, LambdaLR(optimizer, share)


class StackedModels(nn.Module):
    """Models of one architecture with their parameters stacked, (seeds, ...), as one module.

    Updating the stack updates each model as if it were alone, since AdamW and SGD work on every
    number by itself. One model is run as it is, several by ``torch.vmap``.

    Parameters
    ----------
    models
        At least one; all of one architecture. Buffers are those of the first.
    loss
        ``loss(model, batch)``, the scalar loss of one model.

    Raises
    ------
    ArgumentError
        If the models' parameters differ in name or shape.

    Examples
    --------
    >>> pair = StackedModels(
    ...     [nn.Linear(2, 1), nn.Linear(2, 1)], lambda m, x: m(x).square().mean()
    ... )
    >>> pair(torch.ones(2, 5, 2)).shape
    torch.Size([2])
    """

    def __init__(self, models: Sequence[nn.Module], loss: Loss) -> None:
        super().__init__()
        shapes = [{n: p.shape for n, p in m.named_parameters()} for m in models]
        if not models or any(shape != shapes[0] for shape in shapes):
            raise ArgumentError(
                "models must be at least one, all with the same parameters."
            )
        parameters = [dict(m.named_parameters()) for m in models]
        self._names = list(shapes[0])
        self.stacked = nn.ParameterList(
            torch.stack([p[name].detach() for p in parameters]) for name in self._names
        )
        # In a tuple, so that the template's own parameters are none of this module's.
        self._template = (models[0],)
        self._loss = (LossOf(models[0], loss),)
        self.count = len(models)

    def forward(self, batch: Any) -> Tensor:
        """Return the loss of each model, (seeds,), on its own batch (leaves (seeds, ...))."""
        if self.count == 1:
            alone = [p.squeeze(0) for p in self.stacked]
            first = pytree.tree_map(lambda leaf: leaf[0], batch)
            return self._of_one(alone, first)[None]
        return torch.vmap(self._of_one)(list(self.stacked), batch)

    def _of_one(self, parameters: list[Tensor], batch: Any) -> Tensor:
        by_name = {
            f"model.{n}": p for n, p in zip(self._names, parameters, strict=True)
        }
        return functional_call(self._loss[0], by_name, (batch,))

    def model(self, index: int) -> nn.Module:
        """Return the template module, holding the weights of one model until the next call."""
        template = self._template[0]
        parameters = dict(template.named_parameters())
        with torch.no_grad():
            for name, stack in zip(self._names, self.stacked, strict=True):
                parameters[name].copy_(stack[index])
        return template
