"""A device that is none: tensors that live elsewhere, on a machine without a GPU.

Their numbers are computed by the CPU, so that results can be compared. Everything that would make
the host wait for a GPU is counted, by the line of the library that did it: reading a number, copies
either way, results whose shape depends on values, factorisations that check themselves. What would
fail on a GPU fails here: NumPy, and host tensors among those of the device. So do kernels that give
other bits each time they run there.

The device is called "meta", the one device beside the CPU that every build of PyTorch can
differentiate on.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

NAME = "meta"
# They read something of their result on the host: its shape, or whether they succeeded.
WAITING = {
    "_local_scalar_dense",
    "_linalg_check_errors",
    "_linalg_eigh",
    "_linalg_svd",
    "linalg_eig",
    "bincount",
    "equal",
    "masked_select",
    "nonzero",
    "repeat_interleave",
    "_unique2",
    "unique_consecutive",
    "unique_dim",
}
# Sums in the order in which threads arrive, or refused by torch.use_deterministic_algorithms.
UNREPEATABLE = {
    "cumsum",
    "histc",
    "index_add",
    "kthvalue",
    "put",
    "scatter_add",
    "scatter_reduce",
    "segment_reduce",
}
OF_INTEGERS = {"cumsum"}  # the same bits each time where there is no rounding
PLACING = {"_to_copy", "copy"}
INDEXING = {"index", "index_put"}


class DeviceTensor(torch.Tensor):
    """A tensor of the device, which holds its numbers in `host`."""

    host: Tensor

    @staticmethod
    def __new__(cls, host: Tensor) -> DeviceTensor:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            host.size(),
            strides=host.stride(),
            storage_offset=host.storage_offset(),
            dtype=host.dtype,
            device=NAME,
        )
        made.host = host
        return made

    def __repr__(self, **_: Any) -> str:
        return f"DeviceTensor({self.host!r})"

    def numpy(self, **_: Any) -> Any:
        raise TypeError(
            "a tensor of the device is no NumPy array; take it to the host first."
        )

    def __matmul__(
        self, other: Tensor
    ) -> Tensor:  # PyTorch's reshapes a result in place
        return (self[None] @ other)[0] if self.ndim == 1 else super().__matmul__(other)

    def tolist(self) -> Any:
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _run(func, args, kwargs or {}, lambda _: None)


class FakeDevice(TorchDispatchMode):
    """Counts what makes the host wait while it is entered: ``waits``, by line of the library."""

    def __init__(self, *, double: bool = True) -> None:
        """Enter a device with float64, or without, like those of Apple."""
        super().__init__()
        self.double = double
        self.waits: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = _run(
            func, args, kwargs or {}, lambda name: self.waits.update([_line(name)])
        )
        if not self.double and any(_is_double(t) for t in _tensors(result)):
            raise TypeError(f"{func}: this device has no float64.")
        return result

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else PyTorch imports its compiler, which takes seconds

    @property
    def count(self) -> int:
        """How often the host waited."""
        return self.waits.total()


def placed(host: Tensor) -> DeviceTensor:
    """Return a tensor of the device with these numbers."""
    return DeviceTensor(host.detach().clone())


def _run(
    func: Any, args: Any, kwargs: dict[str, Any], wait: Callable[[str], None]
) -> Any:
    name = func._schema.name.removeprefix("aten::")
    plain = name.rstrip("_") if not name.startswith("_") else "_" + name.strip("_")
    tensors = list(_tensors((args, kwargs)))
    here = any(isinstance(t, DeviceTensor) for t in tensors)
    aim = str(kwargs["device"]) if kwargs.get("device") is not None else None
    if not here and aim != NAME and not any(t.device.type == NAME for t in tensors):
        return func(*args, **kwargs)
    _check(plain, tensors)
    crossing = plain in PLACING and (
        aim not in (None, NAME) or any(_on_host(t) for t in tensors)
    )
    if (crossing and not kwargs.get("non_blocking")) or _waits(plain, args, tensors):
        wait(plain)
    inside = {
        key: "cpu" if key == "device" and value else value
        for key, value in kwargs.items()
    }
    result = func(*_each(args, _inner), **_each(inside, _inner))
    if func._schema.is_mutable and name.endswith("_"):
        return args[0] if func._schema.returns else None
    leaves = aim not in (None, NAME)
    return (
        result
        if leaves
        else _each(result, lambda x: DeviceTensor(x) if _tensor(x) else x)
    )


def _check(plain: str, tensors: list[Tensor]) -> None:
    """Refuse what fails on a GPU, or gives other bits each time."""
    if any(t.device.type == NAME and not isinstance(t, DeviceTensor) for t in tensors):
        raise RuntimeError(
            f"{plain}: made of a number of the host; torch.full makes it there."
        )
    if plain not in PLACING | INDEXING and any(_on_host(t) and t.ndim for t in tensors):
        raise RuntimeError(f"{plain}: tensors of the host and of the device at once.")
    whole = plain in OF_INTEGERS and not tensors[0].is_floating_point()
    if plain in UNREPEATABLE and not whole:
        raise RuntimeError(f"{plain} has no kernel on a GPU that repeats its bits.")


def _waits(plain: str, args: Any, tensors: list[Tensor]) -> bool:
    if plain in INDEXING:
        index = list(_tensors(args[1]))
        return any(t.dtype == torch.bool or _on_host(t) for t in index)
    return plain in WAITING


def _tensors(tree: Any) -> Iterator[Tensor]:
    if isinstance(tree, tuple | list):
        for branch in tree:
            yield from _tensors(branch)
    elif isinstance(tree, dict):
        yield from _tensors(list(tree.values()))
    elif _tensor(tree):
        yield tree


def _each(tree: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(tree, tuple | list):
        return type(tree)([_each(branch, change) for branch in tree])
    if isinstance(tree, dict):
        return {key: _each(branch, change) for key, branch in tree.items()}
    return change(tree)


def _tensor(x: Any) -> bool:
    return isinstance(x, torch.Tensor)


def _on_host(t: Tensor) -> bool:
    return t.device.type == "cpu"


def _is_double(t: Tensor) -> bool:
    return isinstance(t, DeviceTensor) and t.dtype == torch.float64


def _inner(x: Any) -> Any:
    return x.host if isinstance(x, DeviceTensor) else x


def _line(name: str) -> str:
    """Return the line of the library that led here, and the operation."""
    frame = sys._getframe(2)
    while frame is not None and "/src/ontogeny/" not in frame.f_code.co_filename:
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return f"outside: {name}"
    return (
        f"{frame.f_code.co_filename.split('/src/ontogeny/')[1]}:{frame.f_lineno} {name}"
    )
