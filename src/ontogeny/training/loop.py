"""The training loop that demo, tasks and reproductions share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR

from ..errors import ArgumentError, NonFiniteError, check_number, check_whole
from .parallel import checked_loss, shared_among

Batches: TypeAlias = Iterable[Any] | Callable[[torch.Generator], Any]
Loss: TypeAlias = Callable[[nn.Module, Any], Tensor]
OnStep: TypeAlias = Callable[[int, nn.Module], object]
Progress: TypeAlias = Callable[[int, int, float], object]


@dataclass(frozen=True)
class TrainingLog:
    """What was seen while training, one entry for each update.

    Parameters
    ----------
    step
        Updates done, 1 to n, (n,) int64.
    loss
        Loss of the batch of that update, before it was applied, (n,) float64.
    learning_rate
        Learning rate of that update, (n,) float64.
    """

    step: np.ndarray
    loss: np.ndarray
    learning_rate: np.ndarray

    def to_dict(self) -> dict[str, list[float]]:
        """Return the log as JSON-ready lists.

        Examples
        --------
        >>> TrainingLog(np.array([1]), np.array([2.5]), np.array([0.1])).to_dict()
        {'step': [1], 'loss': [2.5], 'learning_rate': [0.1]}
        """
        return {name: values.tolist() for name, values in vars(self).items()}


def adamw_one_cycle(
    model: nn.Module,
    steps: int,
    *,
    peak: float = 2e-3,
    warmup: float = 0.1,
    decay: float = 0.01,
) -> tuple[Optimizer, LRScheduler]:
    """Return AdamW with a one-cycle learning rate (Loshchilov and Hutter 2019; Smith 2018).

    The rate rises to `peak` along a cosine and falls to nearly zero; the momentum stays.

    Parameters
    ----------
    model
        Its parameters that require gradients are trained; only matrices are decayed.
    steps
        Length of the cycle in updates, at least 1.
    peak
        Highest learning rate.
    warmup
        Share of the steps in which the rate rises, between 0 and 1.
    decay
        Weight decay.

    Raises
    ------
    ArgumentError
        If `steps` or `warmup` is out of range, or the model has nothing to train.

    Examples
    --------
    >>> optimizer, schedule = adamw_one_cycle(nn.Linear(2, 2), steps=10)
    >>> schedule.get_last_lr()[0] < 2e-3
    True
    """
    check_whole("steps", steps)
    check_number("warmup", warmup, 0, 1, above=True, below=True)
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ArgumentError("model has no parameter that requires a gradient.")
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    # "fused" updates all parameters in one kernel, also on the CPU.
    # The second beta is that of masked language models (Liu et al. 2019): short runs need no longer
    # memory, and the large gradients of the first steps are forgotten sooner.
    optimizer = torch.optim.AdamW(
        [g for g in groups if g["params"]], lr=peak, betas=(0.9, 0.98), fused=True
    )
    # The schedule counts its own first value as a step, so a cycle of one step needs two.
    schedule = OneCycleLR(
        optimizer, peak, total_steps=steps + 1, pct_start=warmup, cycle_momentum=False
    )
    return optimizer, schedule


def train(
    model: nn.Module,
    batches: Batches,
    loss: Loss,
    steps: int,
    *,
    start: int = 0,
    optimizer: Optimizer | None = None,
    schedule: LRScheduler | None = None,
    on_step: Sequence[OnStep] = (),
    clip: float = 1.0,
    device: str | torch.device = "cpu",
    random_state: int = 0,
    progress: Progress | None = None,
    workers: int = 1,
) -> TrainingLog:
    """Train `model` in place for `steps` updates and return the log.

    The same arguments, device and number of threads give the same weights. The seed also governs
    dropout; PyTorch's own random state is left as it was found, and so is the model's mode.

    Parameters
    ----------
    model
        Any module; it is moved to `device`.
    batches
        Either an iterable of batches, or a sampler ``sampler(generator) -> batch``, called once for
        each update with one seeded CPU generator. Tensors in batches, also in dicts, lists and
        tuples, and anything else with a method ``to`` are moved to `device`.
    loss
        ``loss(model, batch)``, a scalar tensor.
    steps
        Number of updates, at least 1.
    start
        Updates that an earlier call has done, fewer than `steps`: the counting goes on there, and
        the log begins there. Batches, optimizer and schedule are the caller's to restore.
    optimizer, schedule
        As PyTorch has them; the schedule is stepped after each update. Without an optimizer:
        `adamw_one_cycle`.
    on_step
        Callables ``f(step, model)``, such as a ``Recorder``: called before the first update with
        step 0, and after each update with the number of updates done. They must not change the
        model.
    clip
        Largest norm of the gradient over all parameters; ``math.inf`` leaves it.
    device
        Where to train.
    random_state
        Seed of the sampler's generator and of dropout.
    progress
        Called after each update as ``progress(step, steps, loss)``.
    workers
        Above 1, threads that each take a part of every batch, with one thread for PyTorch in each:
        faster for small models, and on a CPU only. Batches then have a method ``split(parts)``,
        which gives batches with their shares of the mean loss. The weights do not depend on the
        threads of the machine then, but the random numbers of dropout depend on which thread draws
        first.

    Raises
    ------
    ArgumentError
        If an argument is out of range, the loss is no scalar, or `batches` ends too early.
    NonFiniteError
        If the loss or its gradient is NaN or infinite; the update is not applied.

    Examples
    --------
    >>> model = nn.Linear(2, 1)
    >>> def sampler(generator):
    ...     return torch.randn(8, 2, generator=generator)
    >>> log = train(
    ...     model,
    ...     sampler,
    ...     lambda model, x: (model(x) - x.sum(1, True)).square().mean(),
    ...     5,
    ... )
    >>> log.step
    array([1, 2, 3, 4, 5])
    """
    _check_numbers(steps, start, clip, workers, device)
    if schedule is not None and optimizer is None:
        raise ArgumentError("schedule needs the optimizer that it was made for.")
    model.to(device)
    if optimizer is None:
        optimizer, schedule = adamw_one_cycle(model, steps)
    mode = model.training
    cuda = [torch.device(device)] if torch.device(device).type == "cuda" else []
    together = (
        nullcontext(_backward(loss)) if workers == 1 else shared_among(workers, loss)
    )
    missing = object()
    losses = np.empty(steps - start)
    rates = np.empty(steps - start)
    with torch.random.fork_rng(devices=cuda), together as gradient:
        torch.manual_seed(random_state)
        model.train()
        try:
            # Here and not before: an iterator over a DataLoader draws its seed when it is made.
            stream = _stream(batches, random_state, torch.device(device))
            if start == 0:
                for call in on_step:
                    call(0, model)
            for i in range(start, steps):
                batch = next(stream, missing)
                if batch is missing:
                    raise ArgumentError(
                        f"batches ended after {i - start} batches; {steps - start} steps need "
                        f"{steps - start}."
                    )
                rates[i - start] = optimizer.param_groups[0]["lr"]
                number = _update(model, batch, gradient, optimizer, clip, step=i + 1)
                losses[i - start] = number
                if schedule is not None:
                    schedule.step()
                for call in on_step:
                    call(i + 1, model)
                if progress is not None:
                    progress(i + 1, steps, number)
        finally:
            model.train(mode)
    return TrainingLog(np.arange(start + 1, steps + 1), losses, rates)


def _check_numbers(
    steps: int, start: int, clip: float, workers: int, device: str | torch.device
) -> None:
    check_whole("steps", steps)
    if check_whole("workers", workers) > 1 and torch.device(device).type != "cpu":
        raise ArgumentError(
            f"workers are threads of the CPU; with device={str(device)!r} leave workers at 1, got "
            f"{workers}."
        )
    if not 0 <= start < steps:
        raise ArgumentError(
            f"start must lie between 0 and steps - 1 = {steps - 1}; got {start}."
        )
    if not clip > 0:
        raise ArgumentError(f"clip must be positive; got {clip}.")


def _update(
    model: nn.Module,
    batch: Any,
    gradient: Loss,
    optimizer: Optimizer,
    clip: float,
    step: int,
) -> float:
    optimizer.zero_grad(set_to_none=True)
    number = float(gradient(model, batch))
    if not math.isfinite(number):
        raise NonFiniteError(_diverged("loss", number, step))
    norm = float(nn.utils.clip_grad_norm_(model.parameters(), clip))
    if not math.isfinite(norm):
        raise NonFiniteError(_diverged("norm of the gradient", norm, step))
    optimizer.step()
    return number


def _backward(loss: Loss) -> Loss:
    """Return a function that sets the gradients of a model and returns the loss of a batch."""

    def gradient(model: nn.Module, batch: Any) -> Tensor:
        value = checked_loss(loss(model, batch))
        if torch.isfinite(value):
            value.backward()
        return value.detach()

    return gradient


def _diverged(what: str, number: float, step: int) -> str:
    return (
        f"training stopped at step {step}: the {what} is {number}. The weights are those of step "
        f"{step - 1}; try a lower learning rate or check the data."
    )


def _stream(batches: Batches, random_state: int, device: torch.device) -> Iterator[Any]:
    generator = torch.Generator().manual_seed(random_state)
    if isinstance(batches, Iterable):
        stream: Iterator[Any] = iter(batches)
    elif callable(batches):
        stream = iter(lambda: batches(generator), object())
    else:
        raise ArgumentError(
            "batches must be an iterable of batches or a callable batches(generator); "
            f"got {type(batches).__name__}."
        )
    return (_to(batch, device) for batch in stream)


def _to(batch: Any, device: torch.device) -> Any:
    if hasattr(batch, "to"):
        return batch.to(device)
    if isinstance(batch, dict):
        return {key: _to(value, device) for key, value in batch.items()}
    if hasattr(batch, "_fields"):  # a named tuple takes its fields one by one
        return type(batch)(*(_to(value, device) for value in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(_to(value, device) for value in batch)
    return batch
