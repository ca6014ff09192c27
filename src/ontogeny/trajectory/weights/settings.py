"""The settings that a checkpoint holds beside its weights, and what a builder takes of them."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import ArgumentError, CheckpointError, OntogenyError
from ...own_code import reason
from .configuration import read_configuration
from .digests import digest
from .folders import weight_files
from .inert import Inert
from .pickled import held
from .placed import Placed
from .transformers_models import is_pretrained

_FIELDS = "__dataclass_fields__"
KEYS = ("model_args", "config", "hyper_parameters", "hparams", "args", "model_config")
# Names of an argument that is all settings, also where it has a default.
_WHOLE = {*KEYS, "cfg", "conf", "settings", "params", "options"}
# Where a training ran, which is no matter of the model.
_OF_A_MACHINE = {"device", "device_map", "dtype", "compile"}
# What no forward pass in evaluation mode depends on. A builder that takes no settings cannot follow
# a change of any other.
_OF_TRAINING = re.compile(
    r"(?:.*_)?(?:learning_rate|lr|dropout|pdrop|layerdrop|warmup|seed|epochs?|iters?|iter_num|dir"
    r"|path|file|folder|num_workers|patience|batch_size|weight_decay|grad_clip|accumulation)(?:_.*)?"
    r"|(?:max|total|train|global|current|save|eval|val|log|logging|gradient_accumulation)_steps?|step"
    r"|(?:log|eval|val|save|sample|checkpoint|ckpt)_(?:interval|every|freq)"
    r"|(?:wandb|eval|val|train|save|ckpt|resume|ddp|data|dataset|run|grad|gradient|git|best|log"
    r"|optim|optimizer|adam|muon|exp|project|experiment|job|slurm|use_wandb|always_save)(?:_.*)?"
    r"|beta[12]|betas|wd|momentum|clip_grad.*|optimi[sz]er|schedule[r]?|name|notes?|tags?|comment"
    r"|time|timestamp|date|host(?:name)?|user|backend|device|dtype|precision|amp|compile|init_from"
    r"|world_size|local_rank|tokens_(?:seen|per_iter)|distributed.*|val_loss|loss"
)


_PLAIN = (bool, int, float, str, tuple, list, dict, set, frozenset)


class Settings(dict):
    """Settings by name, as entries and as attributes."""

    __getattr__ = dict.__getitem__


def built(template: Callable[..., nn.Module], path: Path | None) -> nn.Module:
    """Return what a class or a function of a user's makes, with a checkpoint's settings if it asks.

    Raises
    ------
    ArgumentError
        If it fails, or asks for what the checkpoint does not hold.
    """
    if isinstance(template, Placed) and path is not None:
        return template(path)
    name = getattr(template, "__name__", type(template).__name__)
    required = _required(template)
    try:
        settings = held_settings(path) if required else _readable(path)
        taken = _taken(template, settings)
        if taken is None:
            return template()
        if isinstance(taken, str):
            hint = _parameters(template)[taken].annotation
            return template(**{taken: _as_wanted(template, hint, dict(settings))})
        if taken:
            return template(**{name: settings[name] for name in taken})
    except OntogenyError:
        raise
    except Exception as error:  # whatever the user's code raises
        raise ArgumentError(
            f"{name} cannot build the model: {reason(error)}"
        ) from error
    raise ArgumentError(
        f"{name} needs {', '.join(required)}, and the checkpoint holds no settings under "
        f"{', '.join(KEYS)}: name a function without arguments that builds the model."
    )


def taken_settings(template: Any, path: Path | None) -> dict[str, Any]:
    """Return the settings of a checkpoint that its model is built with, as plain values.

    Of a module in memory, which is what it is built of, those that it holds itself.
    """
    if isinstance(template, nn.Module):
        return (
            {} if path is not None or is_pretrained(template) else _of_module(template)
        )
    if template is None:
        return {}
    # A format's own builder.
    if callable(described := getattr(template, "described", None)):
        return flat(described())
    settings = _readable(path)
    taken = _taken(template, settings)
    if taken is None:
        return {}
    return flat(
        settings if isinstance(taken, str) else {name: settings[name] for name in taken}
    )


def _of_module(module: nn.Module) -> dict[str, Any]:
    """Return what a module in memory computes with beside its weights, as plain values.

    Attributes of its parts, tensors that are not stored with the weights, and how many hooks act.
    """
    found: dict[str, Any] = {}
    for path, part in module.named_modules():
        prefix = f"{path}." if path else ""
        hooks = len(part._forward_hooks) + len(part._forward_pre_hooks)
        found |= {f"{prefix}hooks": hooks} if hooks else {}
        unstored = {
            name: part._buffers[name] for name in part._non_persistent_buffers_set
        }
        own = {name: value for name, value in vars(part).items() if name[0] != "_"}
        for name, value in {**own, **unstored}.items():
            if isinstance(value, Tensor):
                found[prefix + name] = digest(value.detach().cpu())
            elif name != "training" and isinstance(value, _PLAIN):
                found |= flat({prefix + name: value})
    return found


def left_settings(template: Any, path: Path | None) -> dict[str, Any]:
    """Return the settings of a model that its builder takes none of, as plain values.

    Those of training alone are left out.
    """
    if template is None or callable(getattr(template, "described", None)):
        return {}
    if path is not None and path.is_dir() and read_configuration(path) is not None:
        return {}  # that of transformers, which is compared as a whole
    settings = _readable(path)
    if not isinstance(template, nn.Module) and _taken(template, settings) is not None:
        return {}
    return {
        name: value
        for name, value in flat(settings).items()
        if not any(_OF_TRAINING.fullmatch(part.lower()) for part in name.split("."))
    }


def _parameters(template: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    try:
        parameters = inspect.signature(template).parameters
    except ValueError:  # of a builtin, such as dict, which is called without arguments
        return {}
    return {name: p for name, p in parameters.items() if p.kind not in several}


def _required(template: Callable[..., Any]) -> tuple[str, ...]:
    """Return the arguments that must be given."""
    return tuple(p.name for p in _parameters(template).values() if p.default is p.empty)


def _taken(
    template: Callable[..., Any], settings: Mapping[str, Any]
) -> tuple[str, ...] | str | None:
    """Return which settings a builder takes by name, or the argument that takes all of them.

    None where it takes none; nothing where it needs what is not there.
    """
    names = _parameters(template)
    required = _required(template)
    by_name = tuple(name for name in settings if name in names)
    if required:
        if {*required} <= settings.keys():
            return by_name
        return required[0] if len(required) == 1 and settings else ()
    by_name = tuple(name for name in by_name if name not in _OF_A_MACHINE)
    if by_name:
        return by_name
    if len(names) == 1 and settings and _WHOLE & names.keys():
        return next(iter(names))
    return None


def _readable(path: Path | None) -> Mapping[str, Any]:
    """Return the settings of a checkpoint; none where it is damaged, which its weights say."""
    try:
        return held_settings(path)
    except (CheckpointError, OSError):
        return {}


def held_settings(path: Path | None) -> Mapping[str, Any]:
    """Return the settings that stand beside the weights, or in the folder's config.json."""
    if path is None or not path.exists():
        return {}
    files = weight_files(path) if path.is_dir() else [path]
    configuration = read_configuration(path, whole=True) if path.is_dir() else None
    if configuration or len(files) != 1:
        return configuration or {}
    stat = files[0].stat()  # as out-500/ckpt.pt
    return _held_in(files[0], (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns))


# Of every step, in every plan; a pickle without zip is read as a whole.
@lru_cache(maxsize=1024)
def _held_in(path: Path, stamp: tuple[int, ...]) -> Mapping[str, Any]:
    for value in held(path, KEYS).values():
        table = (
            value
            if isinstance(value, Mapping) and value
            else getattr(value, "state", None)
        )
        if isinstance(table, Mapping) and table:
            return {str(key): setting for key, setting in table.items()}
    return {}


def _as_wanted(
    template: Callable[..., Any], hint: Any, settings: dict[str, Any]
) -> Any:
    """Return settings as the dataclass that stands beside the class, else as plain settings."""
    beside = vars(sys.modules[template.__module__]).values()
    for cls in (hint, *beside):
        fields = (
            dataclasses.fields(cls)
            if isinstance(cls, type) and hasattr(cls, _FIELDS)
            else ()
        )
        if settings.keys() <= {field.name for field in fields}:
            return cls(**settings)
    return Settings(settings)


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by dotted names, as values that can be compared and written as JSON.

    Examples
    --------
    >>> flat({"rope": {"base": 1e4}, "sizes": (2, 3)})
    {'rope.base': 10000.0, 'sizes': [2, 3]}
    """
    plain: dict[str, Any] = {}
    for key, value in settings.items():
        inner = value.state if isinstance(value, Inert) and not value else value
        if isinstance(inner, Mapping) and inner:
            plain |= flat(inner, f"{prefix}{key}.")
        else:
            plain[f"{prefix}{key}"] = _plain(inner)
    return plain


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Tensor):
        return (
            value.tolist() if value.numel() <= 64 else f"a tensor {tuple(value.shape)}"
        )
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    return (
        str(value)
        if isinstance(value, (torch.dtype, torch.device))
        else type(value).__name__
    )
