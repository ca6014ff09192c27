"""The gradient of a loss as a function of the parameters, with the module left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from ontogeny.errors import ArgumentError, NonFiniteError, check_whole

Loss: TypeAlias = Callable[[nn.Module, Any], Tensor]
Vector: TypeAlias = dict[str, Tensor]

SMALL = 20_000_000
"""Up to so many parameters float64 is the default: four gradients take some seconds on a CPU."""

_NARROW = (torch.float32, torch.float16, torch.bfloat16)
_CASTS = (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16)


def norm(vector: Mapping[str, Tensor]) -> float:
    """Return the Euclidean norm over all tensors, summed in float64.

    Examples
    --------
    >>> norm({"a": torch.tensor([3.0]), "b": torch.tensor([[4.0]])})
    5.0
    """
    norms = [torch.linalg.vector_norm(t, dtype=torch.float64) for t in vector.values()]
    return float(torch.linalg.vector_norm(torch.stack(norms)))


def inner(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> float:
    """Return the inner product over all tensors, summed in float64.

    Examples
    --------
    >>> inner({"a": torch.tensor([3.0, 1.0])}, {"a": torch.tensor([2.0, 5.0])})
    11.0
    """
    return sum(
        float(torch.dot(t.double().flatten(), second[name].double().flatten()))
        for name, t in first.items()
    )


class GradientField:
    """Gradients of ``loss(model, batch)`` at any parameters near those of `model`.

    The module's parameters and buffers are exchanged for copies during a call (`torch.func`), so
    they are never written to, whatever happens. Frozen parameters stay where they are. The mode of
    the module is kept; each batch sees the same dropout masks in every call, and what a forward
    pass writes into buffers (running means of batch norm) is thrown away.

    Parameters
    ----------
    model
        Any module. Tied weights count once.
    loss
        ``loss(model, batch)``: a scalar tensor.
    dtype
        As in `working_dtype`.
    random_state
        Seed of the dropout masks.

    Raises
    ------
    ArgumentError
        If the module has no trainable parameter.

    Examples
    --------
    >>> model = nn.Linear(2, 1, bias=False)
    >>> field = GradientField(model, lambda model, x: model(x).square().mean() / 2)
    >>> value, gradient = field.gradient(torch.eye(2))
    >>> torch.allclose(gradient["weight"], model.weight.double() / 2)
    True
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        dtype: torch.dtype | str | None = None,
        random_state: int = 0,
    ) -> None:
        if not isinstance(model, nn.Module) or not callable(loss):
            raise ArgumentError(
                "model must be an nn.Module and loss a function loss(model, batch); got "
                f"{type(model).__name__} and {type(loss).__name__}."
            )
        self.dtype = working_dtype(model, dtype)
        self.start: Vector = {
            name: self._cast(p)
            for name, p in model.named_parameters()
            if p.requires_grad
        }
        if not self.start:
            raise ArgumentError(
                f"{type(model).__name__} has no parameter with requires_grad."
            )
        self._frozen = {
            name: self._cast(p)
            for name, p in model.named_parameters()
            if not p.requires_grad
        }
        self._buffers = dict(model.named_buffers())
        self._called = LossOf(model, loss)
        self._random_state = check_whole("random_state", random_state, 0)
        device = next(iter(self.start.values())).device
        self._devices = [device] if device.type == "cuda" else []

    def _cast(self, tensor: Tensor) -> Tensor:
        """Return a copy in the dtype of the computation, which the loss may spoil."""
        dtype = self.dtype if tensor.is_floating_point() else tensor.dtype
        return tensor.detach().to(dtype, copy=True)

    def moved(self, direction: Mapping[str, Tensor], by: float) -> Vector:
        """Return the parameters ``start + by * direction``."""
        return {
            name: tensor + by * direction[name] for name, tensor in self.start.items()
        }

    def gradient(
        self, batch: Any, at: Mapping[str, Tensor] | None = None, seed: int = 0
    ) -> tuple[float, Vector]:
        """Return the loss and its gradient at the parameters `at` (by default those of the model).

        Parameters
        ----------
        batch
            What the loss takes; float tensors, also in tuples, lists and dicts, get the dtype of
            the computation.
        at
            Parameters by name, as :meth:`moved` gives them.
        seed
            Which dropout masks; give every batch its own.

        Raises
        ------
        ArgumentError
            If the loss is no scalar, or does not depend on a trainable parameter.
        NonFiniteError
            If the loss or its gradient is not finite.
        """
        point = self.start if at is None else at
        leaves = {name: t.detach().requires_grad_() for name, t in point.items()}
        with self._fixed(seed), torch.enable_grad():
            value = self._loss(leaves, batch)
            if not value.requires_grad:
                raise ArgumentError(
                    "the loss does not depend on any trainable parameter."
                )
            gradients = torch.autograd.grad(
                value, list(leaves.values()), allow_unused=True
            )
        gradient = {
            name: torch.zeros_like(t) if g is None else g
            for (name, t), g in zip(point.items(), gradients, strict=True)
        }
        return _finite(float(value.detach()), gradient)

    def derivative(
        self, batch: Any, direction: Mapping[str, Tensor], seed: int = 0
    ) -> Vector:
        """Return the Hessian of the loss at the model's parameters times `direction`.

        Forward-mode differentiation of the gradient; fused attention kernels, which cannot be
        differentiated twice, are replaced by plain ones.
        """
        plain = sdpa_kernel(SDPBackend.MATH)
        with self._fixed(seed), torch.enable_grad(), plain:
            gradient = torch.func.grad(lambda parameters: self._loss(parameters, batch))
            product = torch.func.jvp(gradient, (self.start,), (dict(direction),))[1]
        return _finite(0.0, product)[1]

    def _loss(self, parameters: Mapping[str, Tensor], batch: Any) -> Tensor:
        state = {**parameters, **self._frozen}
        state |= {name: self._cast(b) for name, b in self._buffers.items()}
        swapped = {f"model.{name}": tensor for name, tensor in state.items()}
        value = torch.func.functional_call(
            self._called, swapped, (self._of_dtype(batch),)
        )
        if not isinstance(value, Tensor) or value.ndim:
            got = (
                tuple(value.shape)
                if isinstance(value, Tensor)
                else type(value).__name__
            )
            raise ArgumentError(
                f"loss(model, batch) must return a scalar tensor; got {got}."
            )
        return value

    def _of_dtype(self, batch: Any) -> Any:
        """Return a tensor, or tuples, lists and dicts of them, in the dtype of the parameters."""
        if isinstance(batch, Tensor):
            return batch.to(self.dtype) if batch.is_floating_point() else batch
        if type(batch) in (tuple, list):
            return type(batch)(self._of_dtype(part) for part in batch)
        if type(batch) is dict:
            return {name: self._of_dtype(part) for name, part in batch.items()}
        return batch

    @contextmanager
    def _fixed(self, seed: int) -> Iterator[None]:
        keep = KeepDouble() if self.dtype == torch.float64 else nullcontext()
        with torch.random.fork_rng(devices=self._devices), keep:
            torch.manual_seed(self._random_state + seed)
            yield


class LossOf(nn.Module):
    """A module whose forward pass is the loss, so that its parameters can be exchanged."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.training = model.training
        self.model = model
        self._loss = loss

    def forward(self, batch: Any) -> Tensor:
        """Return the loss of the model on a batch."""
        return self._loss(self.model, batch)


def _finite(value: float, gradient: Vector) -> tuple[float, Vector]:
    bad = [name for name, g in gradient.items() if not bool(torch.isfinite(g).all())]
    if bad or value != value or abs(value) == float("inf"):
        where = f"its gradient in {', '.join(bad[:3])}" if bad else f"it is {value}"
        raise NonFiniteError(f"the loss or its gradient is not finite: {where}.")
    return value, gradient


def working_dtype(
    model: nn.Module, dtype: torch.dtype | str | None = None
) -> torch.dtype:
    """Return the dtype that an update is computed in.

    Parameters
    ----------
    model
        Its parameters are counted.
    dtype
        ``"float32"``, ``"float64"`` or the PyTorch dtype; None is float64 for models of up to 20
        million parameters and float32 beyond.

    Raises
    ------
    ArgumentError
        If `dtype` is another one.

    Examples
    --------
    >>> working_dtype(nn.Linear(2, 2))
    torch.float64
    """
    if dtype is None:
        count = sum(p.numel() for p in model.parameters())
        return torch.float64 if count <= SMALL else torch.float32
    working = {"float32": torch.float32, "float64": torch.float64}.get(
        str(dtype).split(".")[-1]
    )
    if working is None:
        raise ArgumentError(
            f"dtype must be 'float32', 'float64' or None; got {dtype!r}."
        )
    return working


class KeepDouble(TorchFunctionMode):
    """While active, casts to a narrower floating dtype become casts to float64.

    Many models compute norms, rotary positions and softmax "in float32 for precision", which would
    round a float64 computation to float32 in its middle.

    Examples
    --------
    >>> with KeepDouble():
    ...     torch.ones(1, dtype=torch.float64).float().dtype
    torch.float64
    """

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """Call `func` with float64 in place of narrower dtypes."""
        if func in _CASTS:
            return args[0].double()
        args = tuple(_wide(a) for a in args)
        return func(
            *args, **{name: _wide(value) for name, value in (kwargs or {}).items()}
        )


def _wide(value: Any) -> Any:
    return (
        torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value
    )
