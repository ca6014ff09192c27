"""Sites: what is read at a module, named by its path.

``PATH`` is the module's output, ``PATH#in`` its first input, and ``PATH#q``, ``PATH#k``, ``PATH#v``
are the parts of a fused query-key-value output in a family that has one. These labels name layers
in results and are themselves accepted as patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from ..errors import ArgumentError
from .families import family_of
from .forward import first_tensor
from .fused import FUSED_PARTS, part_index

INPUT = "in"


def split_label(label: str) -> tuple[str, str]:
    """Return module path and part (``""`` for the whole output) of a site's label.

    Examples
    --------
    >>> split_label("h.0.attn.c_attn#q"), split_label("h.0")
    (('h.0.attn.c_attn', 'q'), ('h.0', ''))
    """
    path, _, part = label.partition("#")
    return path, part


def module_of(label: str) -> str:
    """Return the module path of a site's label.

    Examples
    --------
    >>> module_of("h.0#in")
    'h.0'
    """
    return split_label(label)[0]


def known_parts(model: nn.Module, path: str) -> tuple[str, ...]:
    """Return which parts a site at this module may name, in the order in which they are listed."""
    family = family_of(model)
    fused = family is not None and family.is_fused(path)
    return (INPUT, "", *FUSED_PARTS) if fused else (INPUT, "")


@contextmanager
def watched(
    model: nn.Module, labels: Iterable[str], hook: Callable[[str, Any], None]
) -> Iterator[None]:
    """Call ``hook(label, value)`` whenever the forward pass reaches a site.

    The value is the module's output as it is, or the tensor that the label's part names. Hooks
    never outlive the context.
    """
    with ExitStack() as stack:
        for label in labels:
            path, part = split_label(label)
            module = model.get_submodule(path)
            if part == INPUT:
                before = _input_hook(label, hook)
                handle = module.register_forward_pre_hook(before, with_kwargs=True)
            else:
                handle = module.register_forward_hook(_output_hook(model, label, part, hook))
            stack.callback(handle.remove)
        yield


@contextmanager
def changed(
    model: nn.Module, labels: Iterable[str], change: Callable[[str, Any], Tensor]
) -> Iterator[None]:
    """Let ``change(label, value)`` be the value of each site in the forward pass.

    Of an output that is a tuple or a mapping, the first entry is changed and the others stay.
    Hooks never outlive the context.

    Raises
    ------
    ArgumentError
        If a label names a part of a fused output.

    Examples
    --------
    >>> import torch
    >>> model = nn.Sequential(nn.Identity(), nn.Identity())
    >>> with changed(model, ["0"], lambda label, value: 2 * value):
    ...     doubled = model(torch.ones(2))
    >>> doubled.tolist(), model(torch.ones(2)).tolist()
    ([2.0, 2.0], [1.0, 1.0])
    """
    with ExitStack() as stack:
        for label in labels:
            path, part = split_label(label)
            module = model.get_submodule(path)
            if part == INPUT:
                before = _changed_input(label, change)
                handle = module.register_forward_pre_hook(before, with_kwargs=True)
            elif part:
                raise ArgumentError(
                    f"{label!r} is a part of a fused output, and only whole outputs can be "
                    f"changed: choose {path!r}."
                )
            else:
                handle = module.register_forward_hook(_changed_output(label, change))
            stack.callback(handle.remove)
        yield


def _changed_input(label: str, change: Callable[[str, Any], Tensor]) -> Any:
    def call(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if args:
            return (change(label, args[0]), *args[1:]), kwargs
        name = input_name(label, kwargs)
        return args, {**kwargs, name: change(label, kwargs[name])}

    return call


def _changed_output(label: str, change: Callable[[str, Any], Tensor]) -> Any:
    def call(_module: nn.Module, _args: Any, output: Any) -> Any:
        return _replaced(output, change(label, first_tensor(output)))

    return call


def _replaced(output: Any, first: Tensor) -> Any:
    """Return a module's output with its first tensor replaced."""
    if isinstance(output, Tensor):
        return first
    if isinstance(output, Mapping):
        new = output.copy()  # type: ignore[attr-defined]  # ModelOutput keeps its class
        new[next(iter(output))] = first
        return new
    if isinstance(output, tuple) and hasattr(output, "_replace"):
        return output._replace(**{output._fields[0]: first})  # type: ignore[attr-defined]
    return type(output)((first, *output[1:]))


def _input_hook(label: str, hook: Callable[[str, Any], None]) -> Callable[..., None]:
    def call(_module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        hook(label, args[0] if args else kwargs[input_name(label, kwargs)])

    return call


def input_name(label: str, kwargs: Mapping[str, Any]) -> str:
    """Return the name of the keyword argument that is the input of a module.

    Raises
    ------
    ArgumentError
        If none is a tensor.
    """
    tensors = (name for name, value in kwargs.items() if isinstance(value, Tensor))
    name = "hidden_states" if "hidden_states" in kwargs else next(tensors, None)
    if name is None:
        raise ArgumentError(f"{label!r}: the module is called without any tensor.")
    return name


def _output_hook(
    model: nn.Module, label: str, part: str, hook: Callable[[str, Any], None]
) -> Callable[..., None]:
    heads = _interleaved_heads(model) if part else None

    def call(_module: nn.Module, _args: Any, output: Any) -> None:
        if part:
            fused = first_tensor(output)
            index = part_index(part, fused.shape[-1], heads).to(fused.device)
            output = fused.index_select(-1, index)
        hook(label, output)

    return call


def _interleaved_heads(model: nn.Module) -> int | None:
    family = family_of(model)
    if family is None or not family.interleaved:
        return None
    config: Any = model.config
    return int(config.num_attention_heads)
