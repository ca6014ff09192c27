"""Norms and heads as linear maps on directions: what they do where their scale is held fixed."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

_PROBES = 16
# Of probes: large, so that the small number inside the root does not matter.
_SIZE = 1e3
_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class NormPart:
    """A LayerNorm or RMSNorm whose scale is held fixed.

    Parameters
    ----------
    gain
        Its weight, (m,).
    bias
        What it adds, (m,); directions do not meet it.
    centred
        Whether the mean over features is taken off first.
    scale
        One over the norm that a state is divided by.
    """

    gain: Tensor
    bias: Tensor
    centred: bool
    scale: float = 1.0

    def __call__(self, directions: Tensor) -> Tensor:
        """Return (r, m) directions behind the norm."""
        return self.scale * self.gain * self.around(directions)

    def around(self, rows: Tensor) -> Tensor:
        """Return rows without their mean over features, where the norm takes it off."""
        return rows - rows.mean(dim=1, keepdim=True) if self.centred else rows

    def scales(self, norm: nn.Module, states: Tensor) -> Tensor:
        """Return what the norm itself multiplies each of (n, m) states by, (n,)."""
        rows = states.float()
        with torch.no_grad():
            normed = copy.deepcopy(norm).float()(rows) - self.bias
        plain = self.gain * self.around(rows)
        size = plain.square().sum(dim=1).clamp_min(torch.finfo(torch.float32).tiny)
        return (normed * plain).sum(dim=1) / size

    def scaled_as(self, norm: nn.Module, states: Tensor) -> NormPart:
        """Return this norm with its mean scale over (n, m) states."""
        return replace(self, scale=float(self.scales(norm, states).mean()))


@dataclass(frozen=True, eq=False)
class DensePart:
    """A dense layer with an elementwise function behind it, at its mean slope.

    Parameters
    ----------
    weight
        Of the dense layer, (m, m).
    slope
        Mean slope of the function at each feature, (m,).
    """

    weight: Tensor
    slope: Tensor

    def __call__(self, directions: Tensor) -> Tensor:
        """Return (r, m) directions behind the function."""
        return (directions @ self.weight.T) * self.slope


def norm_part(norm: nn.Module, device: torch.device | str) -> NormPart | None:
    """Return what a norm does to directions, found by what it does to probes; None if no norm.

    Whether it is a LayerNorm or an RMSNorm, and whether its weight is stored as the gain or as the
    gain less 1, shows in its results alone.

    Examples
    --------
    >>> (
    ...     norm_part(nn.LayerNorm(4), "cpu").centred,
    ...     norm_part(nn.RMSNorm(4), "cpu").centred,
    ... )
    (True, False)
    >>> norm_part(nn.Linear(4, 4), "cpu") is None
    True
    """
    width = next((p.shape[-1] for p in norm.parameters()), None) or _width_of(norm)
    if width is None:
        return None
    norm_copy = copy.deepcopy(norm).float().to(device)
    probes = _SIZE * torch.randn(
        _PROBES, width, generator=torch.Generator().manual_seed(0)
    )
    probes = probes.to(device)
    with torch.no_grad():
        there = norm_copy(probes)
        back = norm_copy(-probes)
    # x and -x: what changes sign is scaled, what does not is the bias.
    odd = (there - back) / 2
    bias = ((there + back) / 2).mean(dim=0)
    for centred in (True, False):
        part = NormPart(torch.ones(width, device=device), bias, centred)
        plain = part.around(probes)
        unit = plain * plain.square().mean(dim=1, keepdim=True).rsqrt()
        gain = (odd * unit).sum(dim=0) / unit.square().sum(dim=0)
        if float((odd - gain * unit).norm()) <= _TOLERANCE * float(odd.norm()):
            return replace(part, gain=gain)
    return None


def _width_of(norm: nn.Module) -> int | None:
    shape = getattr(norm, "normalized_shape", None)
    return int(shape[-1]) if isinstance(shape, Sequence) and len(shape) else None


def head_part(
    head: nn.Module, dense: str, norm: str, states: Tensor
) -> tuple[DensePart, NormPart]:
    """Return a masked model's head: a dense layer, an elementwise function, and a norm.

    Parameters
    ----------
    head
        The module that holds all three.
    dense, norm
        Paths of two of them inside of it.
    states
        What the dense layer is given, (n, m).

    Returns
    -------
    tuple
        The function's slopes are those at the states, each weighted by the scale of the norm
        there; so the norm's own scale is 1.
    """
    layer = head.get_submodule(dense)
    last = head.get_submodule(norm)
    weight = layer.get_parameter("weight")
    values: dict[str, Tensor] = {}

    def after_dense(_module: nn.Module, _args: Any, output: Tensor) -> None:
        values["before"] = output

    def before_norm(_module: nn.Module, args: tuple[Tensor, ...]) -> None:
        values["after"] = args[0]

    with ExitStack() as stack, torch.enable_grad():
        stack.callback(layer.register_forward_hook(after_dense).remove)
        stack.callback(last.register_forward_pre_hook(before_norm).remove)
        head(states.to(weight.dtype).clone().requires_grad_())
        (slopes,) = torch.autograd.grad(values["after"].sum(), values["before"])
    part = norm_part(last, weight.device)
    assert part is not None
    scales = part.scales(last, values["after"].detach())
    slope = (slopes.float() * scales[:, None]).mean(dim=0)
    return DensePart(weight.detach().float().clone(), slope), part
