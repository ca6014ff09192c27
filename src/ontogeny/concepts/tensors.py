"""NumPy arrays in and out of solvers that are written for PyTorch, and tensors of other devices.

And what a fit certainly holds beside its activations, and whether there is room for it.

A number of a GPU that is read on the host makes the host wait until everything before it is
computed. Loops therefore decide by ``if_read`` and ``select``, which read flags on the CPU only.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice, repeat
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor

from ..arrays import Array
from ..errors import ArgumentError, check_number, check_whole
from ..machine import free_memory, one_thread

Values = TypeVar("Values", bound=tuple[Tensor, ...])

LARGE = 1 << 23  # numbers from which products gain by several threads
WITHOUT_DOUBLE = {"mps"}  # devices that have no float64


@contextmanager
def plain_tensors() -> Iterator[None]:
    """Compute without gradients, and with ordinary tensors also in a caller's inference mode."""
    with torch.inference_mode(False), torch.no_grad():
        yield


def threads_for(A: Tensor) -> AbstractContextManager[None]:
    """Compute on one thread where `A` is not large: its products end before threads have met."""
    return one_thread() if on_cpu(A) and A.numel() < LARGE else nullcontext()


def as_tensor(array: Array) -> Tensor:
    """Wrap without a copy where memory may be shared (read-only memory is copied)."""
    if isinstance(array, torch.Tensor):
        return array
    array = np.asarray(array)
    if array.dtype.kind == "f" and array.dtype not in (np.float64, np.float32):
        # Other byte orders and widths, which PyTorch lacks.
        array = array.astype(np.float64)
    shared = array.flags.writeable and all(s >= 0 for s in array.strides)
    return torch.from_numpy(array if shared else array.copy())


def on_cpu(tensor: Tensor) -> bool:
    """Return whether the numbers are at hand: reading one waits for no device.

    Examples
    --------
    >>> on_cpu(torch.ones(2))
    True
    """
    return tensor.device.type == "cpu"


def precise(tensor: Tensor) -> Tensor:
    """Return the tensor in float64, or as it is on a device that has no float64.

    For sums and for small matrices: many GPUs compute in float64 at a fraction of their speed.

    Examples
    --------
    >>> precise(torch.ones(2)).dtype
    torch.float64
    """
    return tensor if tensor.device.type in WITHOUT_DOUBLE else tensor.double()


def if_read(flag: Tensor) -> bool | None:
    """Return a flag where reading it waits for no device, elsewhere None.

    Examples
    --------
    >>> if_read(torch.tensor(False))
    False
    """
    return bool(flag) if on_cpu(flag) else None


def select(flag: Tensor, yes: Values, no: Values) -> Values:
    """Return the tensors `yes` where the flag is set, else the tensors `no`.

    Examples
    --------
    >>> one, two = torch.tensor(1), torch.tensor(2)
    >>> select(one > two, (one,), (two,))
    (tensor(2),)
    """
    if on_cpu(flag):
        return yes if flag else no
    pairs = zip(yes, no, strict=True)
    return tuple(torch.where(flag, *pair) for pair in pairs)  # type: ignore[return-value]


def give(tensor: Tensor, like: Any) -> Array:
    """Return `tensor` as the kind of array that `like` is."""
    return tensor if isinstance(like, torch.Tensor) else tensor.numpy()


# Bytes that are never asked for beforehand: small fits are made by the thousand.
SMALL = 1 << 26


def check_room(
    name: str, needed: int, shape: tuple[int, int], like: torch.Tensor
) -> None:
    """Refuse a fit of `name` that needs more bytes than its device has.

    Raises
    ------
    ArgumentError
        If the bytes that are free are known to be fewer than `needed`.
    """
    if needed <= SMALL:
        return
    free = _free_on(like.device)
    if free is not None and needed > free:
        n, m = shape
        raise ArgumentError(
            f"{name} of {n:,} x {m:,} activations holds at least {needed / 1e9:.3g} GB beside "
            f"them, and {free / 1e9:.3g} GB are free; fit fewer samples or concepts, or float32."
        )


def _free_on(device: torch.device) -> int | None:
    """Return the bytes that may still be taken on a device; None where it cannot be known."""
    if device.type == "cpu":
        return free_memory()
    if device.type == "cuda":
        reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(
            device
        )
        return int(torch.cuda.mem_get_info(device)[0]) + reserved
    return None


Step = TypeVar("Step", bound=tuple[Tensor, ...])

# Iterations after which the host asks another device whether it is done.
READ_EVERY = 10


def iterate(
    steps: Iterator[Step], finished: Callable[[Step], Tensor], max_iter: int
) -> tuple[Step, int, bool]:
    """Take `steps` until one is `finished`, but at most `max_iter` of them.

    On a GPU the host reads only every ``READ_EVERY`` iterations whether one was; what came after
    it is dropped, so that the result is the same.

    Returns
    -------
    step
        The last one taken.
    n_iter
        How many were taken.
    converged
        Whether the last one was `finished`.

    Examples
    --------
    >>> halves = ((torch.tensor(0.5**k),) for k in range(100))
    >>> iterate(halves, lambda step: step[0] < 0.2, max_iter=50)
    ((tensor(0.1250),), 4, True)
    """
    late: _Late[Step] | None = None
    for count, step in enumerate(islice(steps, max_iter), 1):
        flag = finished(step)
        if on_cpu(flag):
            if flag:
                return step, count, True
            continue
        late = _Late(step, flag) if late is None else late.then(step, flag)
        if count % READ_EVERY == 0 and late.read()[1]:
            break
    return (step, count, False) if late is None else (late.step, *late.read())


class _Late(Generic[Step]):
    """Steps on a device, of which the host does not know yet whether one was the last."""

    def __init__(self, step: Step, over: Tensor) -> None:
        self.step = step
        self.over = over
        self.count = torch.ones_like(over, dtype=torch.int64)

    def then(self, step: Step, flag: Tensor) -> _Late[Step]:
        """Go on with the next step, which counts unless an earlier one was the last."""
        pairs = zip(self.step, step, strict=True)
        self.step = tuple(torch.where(self.over, *pair) for pair in pairs)  # type: ignore[assignment]
        self.count = self.count + ~self.over
        self.over = self.over | flag
        return self

    def read(self) -> tuple[int, bool]:
        """Wait for the device; return how many steps counted and whether the last was one."""
        count, over = torch.stack([self.count, self.over.long()]).tolist()
        return count, bool(over)


class Stalled:
    """Whether an objective fell by no more than `tol` of itself within `window` iterations.

    A fall below `noise` counts as none. An infinite objective stands for a rejected step: it never
    ends the iteration, and leaves what is known of earlier ones.

    Examples
    --------
    >>> stalled = Stalled(tol=0.1)
    >>> [bool(stalled(torch.tensor(objective))) for objective in (4.0, 2.0, 1.9)]
    [False, False, True]
    """

    def __init__(
        self, tol: float, window: int = 1, noise: Tensor | float = -math.inf
    ) -> None:
        self.tol = tol
        self.noise = noise
        self.window = window
        self._history: deque[Tensor] = deque(maxlen=window)

    def __call__(self, objective: Tensor) -> Tensor:
        """Take note of the objective of the next iteration, and say whether it was the last."""
        if not self._history:
            self._history.extend(
                repeat(torch.full_like(objective, math.inf), self.window)
            )
        before = self._history[0]
        accepted = torch.isfinite(objective)
        self._history.append(torch.where(accepted, objective, before))
        return accepted & (
            before - objective <= (self.tol * objective).clamp(min=self.noise)
        )


def check_seed(random_state: Any) -> np.random.RandomState:
    """Return NumPy's generator for a seed, by scikit-learn's convention.

    Raises
    ------
    ArgumentError
        If it is no whole number from 0 to 2^32 - 1, no ``numpy.random.RandomState`` and not None.

    Examples
    --------
    >>> check_seed(3).randint(10)
    8
    """
    try:
        return check_random_state(random_state)
    except ValueError:
        raise ArgumentError(
            "random_state must be a whole number from 0 to 4294967295, a numpy.random.RandomState "
            f"or None; got {random_state!r}."
        ) from None


def check_stopping(max_iter: object, tol: object) -> None:
    """Check a stopping rule.

    Raises
    ------
    ArgumentError
        If `max_iter` is not a whole number of at least 1 or `tol` no finite number of at least 0.
    """
    check_whole("max_iter", max_iter)
    check_number("tol", tol)
