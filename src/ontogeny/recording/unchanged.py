"""A live model as it was, after it has been observed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn


@contextmanager
def unchanged(model: nn.Module) -> Iterator[None]:
    """Hold `model` in evaluation mode without gradients; then everything is as it was.

    That is the mode of every module, gradients and ``requires_grad``, the values of buffers, hooks,
    and the random states of Python, NumPy and PyTorch on all devices. Weights are not copied:
    nothing that observes may write to them.

    Examples
    --------
    >>> model = nn.Dropout(0.5).train()
    >>> state = torch.get_rng_state()
    >>> with unchanged(model):
    ...     _ = model(torch.rand(3))
    >>> model.training, torch.equal(torch.get_rng_state(), state)
    (True, True)
    """
    modules = [(m, m.training, _hooks(m)) for m in model.modules()]
    gradients = [(p, p.grad, p.requires_grad) for p in model.parameters()]
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    entries = [(module, dict(module._buffers)) for module in model.modules()]
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002  # what others use
    with _torch_random_states(), torch.no_grad():
        model.eval()
        try:
            yield
        finally:
            for module, training, hooks in modules:
                module.training = training
                for name, known in hooks.items():
                    table = getattr(module, name)
                    table.clear()
                    table.update(known)
            for module, own in entries:
                module._buffers.clear()
                module._buffers.update(own)
            for buffer, before in buffers:
                if not torch.equal(buffer, before):
                    buffer.copy_(before)
            for parameter, gradient, requires in gradients:
                parameter.grad = gradient
                if parameter.requires_grad != requires:
                    parameter.requires_grad_(requires)
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002


@contextmanager
def _torch_random_states() -> Iterator[None]:
    """Put back the random states of the CPU and of every GPU that is in use."""
    gpus = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    of_mps = torch.mps.get_rng_state() if torch.backends.mps.is_available() else None
    with torch.random.fork_rng(devices=gpus):
        try:
            yield
        finally:
            if of_mps is not None:
                torch.mps.set_rng_state(of_mps)


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _hooks(module: nn.Module) -> dict[str, dict]:
    return {name: dict(getattr(module, name)) for name in _HOOKS}
