"""The gradient of one batch, computed by several threads that take a part of it each.

Small models gain little from the threads within an operation: most of their time goes into waiting
for each other, and where something else runs on the machine that waiting takes longer than the
work. Threads that each go through the whole model wait once for every update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import ArgumentError


@contextmanager
def shared_among(
    workers: int, loss: Callable[[nn.Module, Any], Tensor]
) -> Iterator[Callable[[nn.Module, Any], Tensor]]:
    """Give a function that sets the gradients of a model and returns the loss of a batch.

    The parts' gradients are added in their order, so that equal arguments give equal bits however
    the threads are scheduled. PyTorch uses one thread within each of them.

    Parameters
    ----------
    workers
        How many threads.
    loss
        ``loss(model, batch)``, the mean over a batch.

    Raises
    ------
    ArgumentError
        From that function: if a batch has no method ``split``, that gives nothing, or shares that
        do not add up to 1, or if the loss is no scalar.

    Examples
    --------
    >>> class Rows(list):
    ...     def split(self, parts):
    ...         return [([row], 1 / len(self)) for row in self]
    >>> model, batch = (
    ...     nn.Linear(2, 1),
    ...     Rows([torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])]),
    ... )
    >>> with shared_among(
    ...     2, lambda model, rows: model(torch.stack(rows)).mean()
    ... ) as gradient:
    ...     _ = gradient(model, batch)
    >>> model.weight.grad
    tensor([[2., 3.]])
    """
    threads = torch.get_num_threads()

    def part(
        model: nn.Module, batch: Any, share: float
    ) -> tuple[Tensor, tuple[Any, ...]]:
        value = share * checked_loss(loss(model, batch))
        parameters = [p for p in model.parameters() if p.requires_grad]
        return value.detach(), torch.autograd.grad(value, parameters, allow_unused=True)

    with ThreadPoolExecutor(
        workers, initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:

        def gradient(model: nn.Module, batch: Any) -> Tensor:
            parts = _parts(batch, workers)
            results = list(pool.map(lambda item: part(model, *item), parts))
            parameters = [p for p in model.parameters() if p.requires_grad]
            for parameter, *gradients in zip(
                parameters, *(g for _, g in results), strict=True
            ):
                present = [item for item in gradients if item is not None]
                parameter.grad = reduce(torch.add, present) if present else None
            return torch.stack([value for value, _ in results]).sum()

        torch.set_num_threads(1)  # the optimizer's operations are small too
        try:
            yield gradient
        finally:
            torch.set_num_threads(threads)


def _parts(batch: Any, workers: int) -> Sequence[tuple[Any, float]]:
    split = getattr(batch, "split", None)
    if split is None or isinstance(batch, Tensor):
        raise ArgumentError(
            f"workers={workers} needs batches with a method split(parts) that gives pairs of a "
            f"batch and its share of the mean loss; a {type(batch).__name__} has none."
        )
    parts = list(split(workers))
    total = sum(share for _, share in parts)
    if not abs(total - 1) < 1e-6:
        raise ArgumentError(
            f"the shares that split({workers}) of a {type(batch).__name__} gives must add up to 1; "
            f"{len(parts)} parts add up to {total:g}."
        )
    return parts


def checked_loss(value: Any) -> Tensor:
    """Return a loss if it is a tensor with no dimension.

    Raises
    ------
    ArgumentError
        If it is anything else.

    Examples
    --------
    >>> checked_loss(torch.zeros(2))
    Traceback (most recent call last):
    ontogeny.errors.ArgumentError: loss must return a tensor with no dimension; it returned (2,).
    """
    if not isinstance(value, Tensor) or value.ndim != 0:
        came = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise ArgumentError(
            f"loss must return a tensor with no dimension; it returned {came}."
        )
    return value
