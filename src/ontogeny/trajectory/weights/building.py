"""Modules from checkpoints: a fresh one, or new weights in one that is there already."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from ...errors import ArgumentError, CheckpointError
from .files import Reader, Weights, state_tensors
from .inert import few
from .names import map_names
from .placed import unplaced
from .placement import is_placed, names_in_files, own_copy, replace_tensor, settled
from .precision import promoted, widest
from .settings import built
from .transformers_models import PASS_MODEL, is_pretrained, load_pretrained, own_memory

Template: TypeAlias = nn.Module | Callable[..., nn.Module]


def check_template(model: object) -> None:
    """Raise ArgumentError unless `model` is a module, a function that builds one, or None."""
    if model is not None and not isinstance(model, nn.Module) and not callable(model):
        raise ArgumentError(
            "model must be an nn.Module or a function without arguments that builds one; "
            f"got {type(model).__name__}."
        )


def check_dtype(dtype: object) -> None:
    """Raise ArgumentError unless `dtype` is a floating-point torch.dtype or None."""
    if dtype is not None and not (
        isinstance(dtype, torch.dtype) and dtype.is_floating_point
    ):
        raise ArgumentError(
            f"dtype must be a floating-point torch.dtype or None; got {dtype!r}."
        )


def build(
    label: str,
    weights: Weights,
    path: Path | None,
    template: Template | None,
    dtype: torch.dtype | None = None,
) -> nn.Module:
    """Return a new module on the CPU with these weights, in eval mode.

    With a `template` it is a copy of that module; without one the class comes from the config.json
    in `path`.

    Raises
    ------
    CheckpointError
        If any weight is missing, newly initialised, left over or of another shape.
    """
    if template is None:
        if path is None:
            raise CheckpointError(f"{label} is a state dict; {PASS_MODEL}.")
        return _from_folder(weights, path, dtype)
    module = instantiate(template, path)
    if dtype is not None:
        _cast(module, dtype)
    module.train()  # what it fused or kept for evaluation comes from other weights
    with weights.open() as reader:
        names = map_names(module, reader.names(), path)
        if not is_pretrained(module):
            _check_complete(label, names.missing, names.unexpected)
        elif names.missing and path is not None:
            # Perhaps in parts, which transformers joins.
            return _from_folder(weights, path, dtype, like=module)
        else:
            _check_complete(label, names.missing, ())
        put(label, reader, module, names.to_file, exact=dtype is None)
    return module.eval()


def _from_folder(
    weights: Weights,
    path: Path,
    dtype: torch.dtype | None,
    like: nn.Module | None = None,
) -> nn.Module:
    """Return the model that transformers makes of the weights, by the configuration in `path`."""
    with weights.open() as reader:
        return own_memory(
            load_pretrained(path, reader, dtype or widest(reader), like)
        ).eval()


def build_mapped(
    label: str, weights: Weights, path: Path | None, template: Template | None
) -> nn.Module:
    """Return a module as `build` does, whose weights are read from the files when they are used.

    Only where transformers makes it of the configuration in `path`; any other is built.
    """
    if unplaced(template) is not None or path is None:
        return build(label, weights, path, template)
    with weights.open() as reader:
        return load_pretrained(path, reader, widest(reader)).eval()


def instantiate(template: Template, path: Path | None = None) -> nn.Module:
    """Return a module: a copy of `template`, or what it builds for a file.

    It is on the CPU, or where accelerate has placed it.
    """
    if isinstance(template, nn.Module):
        placed = is_placed(template)
        return own_copy(template) if placed else copy.deepcopy(template).cpu()
    # Initial values are overwritten; nobody's seed moves.
    with torch.random.fork_rng(devices=[]):
        module = built(template, path)
    if not isinstance(module, nn.Module):
        raise ArgumentError(
            f"model() must return an nn.Module; got {type(module).__name__}."
        )
    if is_pretrained(module):
        _own_configuration(module)
    return settled(module) if is_placed(module) else module.cpu()


def _cast(module: nn.Module, dtype: torch.dtype) -> None:
    """Give a module another dtype, but rotary frequencies, which transformers never rounds.

    Rounded to bfloat16 they moved a loss by .001. A module may hold a model of transformers.
    """
    kept: dict[tuple[nn.Module, str], Tensor | None] = {}
    for model in filter(is_pretrained, module.modules()):
        for part in model.modules():
            names = [name for name in part._buffers if "inv_freq" in name]
            kept |= {(part, name): part._buffers[name] for name in names}
    module.to(dtype)
    for (part, name), frequencies in kept.items():
        part._buffers[name] = frequencies


def _own_configuration(module: nn.Module) -> None:
    """Give a model copies of the configurations that it may share with others of its function.

    A pass for attention maps changes it meanwhile, and so changed the model of another thread.
    """
    from transformers import PretrainedConfig

    memo: dict[int, Any] = {}
    for part in module.modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, PretrainedConfig):
                setattr(part, name, copy.deepcopy(value, memo))


def _check_complete(
    label: str, missing: tuple[str, ...], unexpected: tuple[str, ...]
) -> None:
    problems = [
        f"{what} {few(names)}"
        for what, names in (("lacks", missing), ("also holds", unexpected))
        if names
    ]
    if problems:
        raise CheckpointError(
            f"{label} is not this model: it {' and '.join(problems)}."
        )


def put(
    label: str,
    reader: Reader,
    module: nn.Module,
    to_file: Mapping[str, str],
    exact: bool,
) -> None:
    """Copy stored tensors into `module` in place; `exact` refuses a loss of precision.

    Raises
    ------
    CheckpointError
        If a shape differs, precision would be lost, or two stored tensors that the module ties
        to each other differ. The module's weights are then of no use.
    """
    filled: dict[int, str] = {}
    in_files = names_in_files(module)
    with torch.no_grad():
        for name, target in state_tensors(module).items():
            source = to_file[name]
            before = filled.setdefault(id(target), source)
            if before != source:
                _check_tied(label, reader, before, source)
                continue
            _check_fits(label, reader, source, target, exact)
            if name in in_files:
                replace_tensor(module, target, reader.get(source))
            else:
                target.copy_(reader.get(source))
    if not is_pretrained(module) and any(map(_loads_itself, module.modules())):
        module.load_state_dict(module.state_dict(), strict=False)


def _loads_itself(part: nn.Module) -> bool:
    """Return whether a part does something of its own when weights are loaded.

    As one that computes a buffer of its weights then.
    """
    names = ("load_state_dict", "_load_from_state_dict")
    if part._load_state_dict_post_hooks:
        return True
    of_torch = type(part).__module__.partition(".")[0] == "torch"
    return not of_torch and any(
        getattr(type(part), n) is not getattr(nn.Module, n) for n in names
    )


def _check_fits(
    label: str, reader: Reader, source: str, target: Tensor, exact: bool
) -> None:
    shape = reader.shape(source)
    dtype = reader.dtype(source)
    if shape != tuple(target.shape):
        raise CheckpointError(
            f"{label}: {source} has shape {shape}, the model's is {tuple(target.shape)}."
        )
    if exact and promoted(dtype, target.dtype) != target.dtype:
        raise CheckpointError(
            f"{label}: {source} is stored as {dtype} and the module holds {target.dtype}, which "
            f"would lose precision; pass dtype={dtype}."
        )


def _check_tied(label: str, reader: Reader, one: str, other: str) -> None:
    # NaN is not equal to itself: damaged weights are tied all the same.
    if one != other and not _same(reader.get(one), reader.get(other)):
        raise CheckpointError(
            f"{label}: the model ties {one} and {other}, but they differ here."
        )


def agreeing(reader: Reader, module: nn.Module, to_file: Mapping[str, str]) -> set[str]:
    """Return the names under which `module` holds exactly the stored tensor that they map to."""
    return {
        name
        for name, tensor in state_tensors(module).items()
        if name in to_file
        and reader.shape(to_file[name]) == tuple(tensor.shape)
        and _same(reader.get(to_file[name]).to(tensor.dtype), tensor.detach().cpu())
    }


def _same(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors are equal, where NaN equals NaN."""
    return torch.equal(one, other) or torch.allclose(
        one, other, rtol=0, atol=0, equal_nan=True
    )
