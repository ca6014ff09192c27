"""Sites: what is read at a module, named by its path.

``PATH`` is the module's output, ``PATH#in`` its first input, and ``PATH#q``, ``PATH#k``, ``PATH#v``
are the parts of a fused query-key-value output in a family that has one. Of a module that is called
several times, as shared blocks are, ``PATH@0`` and ``PATH@0#in`` are of its first call. These
labels name layers in results and are themselves accepted as patterns.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import ArgumentError
from .families import family_of
from .forward import first_tensor

FUSED_PARTS = ("q", "k", "v")

INPUT = "in"


def split_label(label: str) -> tuple[str, str]:
    """Return module path and part (``""`` for the whole output) of a site's label.

    Examples
    --------
    >>> split_label("h.0.attn.c_attn#q"), split_label("h.0@3")
    (('h.0.attn.c_attn', 'q'), ('h.0', ''))
    """
    path, _, part = label.partition("#")
    return path.partition("@")[0], part


def call_of(label: str) -> int | None:
    """Return which call of its module a site's label names, None where it names none.

    Examples
    --------
    >>> call_of("layer@3#in"), call_of("layer")
    (3, None)
    """
    number = label.partition("#")[0].partition("@")[2]
    return int(number) if number else None


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


def watched(
    model: nn.Module, labels: Iterable[str], hook: Callable[[str, Any], None]
) -> AbstractContextManager[None]:
    """Call ``hook(label, value)`` whenever the forward pass reaches a site.

    The value is the module's output as it is, or the tensor that the label's part names. Hooks
    never outlive the context.
    """
    return _hooked(
        model, labels, hook, _watch_input, functools.partial(_watch_output, model)
    )


def changed(
    model: nn.Module, labels: Iterable[str], change: Callable[[str, Any], Tensor]
) -> AbstractContextManager[None]:
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
    labels = list(labels)
    if fused := [label for label in labels if split_label(label)[1] not in ("", INPUT)]:
        raise ArgumentError(
            f"{fused[0]!r} is a part of a fused output, and only whole outputs can be changed: "
            f"choose {module_of(fused[0])!r}."
        )
    return _hooked(model, labels, change, _change_input, _change_output)


@contextmanager
def _hooked(
    model: nn.Module,
    labels: Iterable[str],
    function: Callable[[str, Any], Any],
    on_input: Callable[..., Any],
    on_output: Callable[..., Any],
) -> Iterator[None]:
    calls: Counter[str] = Counter()  # of this forward pass
    with ExitStack() as stack:
        stack.callback(model.register_forward_pre_hook(lambda *_: calls.clear()).remove)
        for label in labels:
            path, part = split_label(label)
            module = model.get_submodule(path)
            check_not_in_parts(model, path)
            if part == INPUT:
                before = _at_call(
                    label, calls, functools.partial(on_input, label, function)
                )
                handle = module.register_forward_pre_hook(before, with_kwargs=True)
            else:
                after = _at_call(
                    label, calls, functools.partial(on_output, label, function)
                )
                handle = module.register_forward_hook(after)
            stack.callback(handle.remove)
        yield


def _at_call(
    label: str, calls: Counter[str], hook: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the hook for the one call that a label names, or for all where it names none."""
    call = call_of(label)
    if call is None:
        return hook

    def gated(*args: Any) -> Any:
        calls[label] += 1
        return hook(*args) if calls[label] == call + 1 else None

    return gated


def _change_input(
    label: str,
    change: Callable[[str, Any], Tensor],
    _module: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    if args:
        return (change(label, args[0]), *args[1:]), kwargs
    name = input_name(label, kwargs)
    return args, {**kwargs, name: change(label, kwargs[name])}


def _change_output(
    label: str,
    change: Callable[[str, Any], Tensor],
    _module: nn.Module,
    _args: Any,
    output: Any,
) -> Any:
    return _replaced(output, change(label, first_tensor(output)))


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


def _watch_input(
    label: str,
    hook: Callable[[str, Any], None],
    _module: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> None:
    value = args[0] if args else kwargs[input_name(label, kwargs)]
    hook(label, _whole(label, _module, value, 1))


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


def _watch_output(
    model: nn.Module,
    label: str,
    hook: Callable[[str, Any], None],
    _module: nn.Module,
    _args: Any,
    output: Any,
) -> None:
    part = split_label(label)[1]
    output = _whole(label, _module, output, 0)
    if part:
        # GPT-NeoX interleaves: each head's query, key and value follow each other, so that a
        # third of the columns is a third of the heads and no query.
        family = family_of(model)
        config: Any = model.config
        heads = (
            int(config.num_attention_heads) if family and family.interleaved else None
        )
        fused = first_tensor(output)
        output = fused.index_select(
            -1, part_index(part, fused.shape[-1], heads).to(fused.device)
        )
    hook(label, output)


def is_sharded(module: nn.Module, dim: int = 0) -> bool:
    """Return whether processes share a module's own weight, each with a part of its outputs.

    Of its inputs where `dim` is 1.

    Examples
    --------
    >>> is_sharded(nn.Linear(2, 2))
    False
    """
    weight = module._parameters.get("weight")
    placements = getattr(weight, "placements", ())
    stored = _stored_dim(module, dim)
    return any(placement.is_shard(stored) for placement in placements)


def _stored_dim(module: nn.Module, dim: int) -> int:
    """Return the dimension of a weight that outputs (0) or inputs (1) have.

    An embedding stores (rows, features), all others of torch (outputs, inputs).
    """
    return 1 - dim if isinstance(module, nn.Embedding) else dim


def check_not_in_parts(model: nn.Module, path: str) -> None:
    """Check that a module without weights does not stand between parts of others.

    Raises
    ------
    ArgumentError
        If it does, as what stands behind a column-parallel projection: it sees a part.
    """
    parent, _, name = path.rpartition(".")
    module = model.get_submodule(path)
    if next(module.parameters(), None) is None and any(
        is_sharded(child)
        for other, child in model.get_submodule(parent).named_children()
        if other != name
    ):
        raise ArgumentError(_in_part(path))


def check_heads_whole(model: nn.Module, paths: Iterable[str]) -> None:
    """Check that no attention module has a part of its heads only.

    Raises
    ------
    ArgumentError
        If processes share the heads of one.
    """
    for path in paths:
        module = model.get_submodule(module_of(path))
        if any(is_sharded(part) for part in module.modules()):
            raise ArgumentError(
                f"{path} has a part of its heads in each of several processes, so no maps of all "
                "are there; load the model without a tp_plan."
            )


def _whole(label: str, module: nn.Module, value: Any, dim: int) -> Any:
    """Return what a module takes or gives; what processes know to be parts of theirs is gathered.

    Raises
    ------
    ArgumentError
        If it is a part that nothing says it of.
    """
    tensor = first_tensor(value)
    if hasattr(tensor, "full_tensor"):
        return tensor.full_tensor()
    if is_sharded(module, dim) and isinstance(tensor, Tensor):
        whole = module.get_parameter("weight").shape[_stored_dim(module, dim)]
        if tensor.shape[-1] != whole:
            raise ArgumentError(_in_part(label))
    return value


def _in_part(label: str) -> str:
    return (
        f"{label} is computed in parts by several processes, of which this one has its own; choose "
        "the module around it, whose output is whole, or load the model without a tp_plan."
    )


def part_index(part: str, width: int, heads: int | None) -> torch.Tensor:
    """Return where query, key or value lies among the `width` outputs of a fused projection.

    Parameters
    ----------
    part
        ``"q"``, ``"k"`` or ``"v"``.
    width
        Outputs of the fused projection: three times those of one part.
    heads
        None if the three lie one after the other (GPT-2, ModernBERT); the number of heads if they
        lie side by side within each head (GPT-NeoX).

    Returns
    -------
    torch.Tensor
        (width / 3,) int64, increasing.

    Raises
    ------
    ArgumentError
        If `width` does not split that way.

    Examples
    --------
    >>> part_index("k", 12, None).tolist(), part_index("k", 12, 2).tolist()
    ([4, 5, 6, 7], [2, 3, 8, 9])
    """
    groups = 3 * (heads or 1)
    if width % groups:
        split = "query, key and value" + (f" of {heads} heads" if heads else "")
        raise ArgumentError(
            f"a fused projection of width {width} does not split into {split}."
        )
    return (
        torch.arange(width)
        .reshape(heads or 1, 3, -1)[:, FUSED_PARTS.index(part)]
        .flatten()
    )
