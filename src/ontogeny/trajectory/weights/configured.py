"""Models of a user's class that is given its settings, as the checkpoint holds them."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from ...errors import ArgumentError, CheckpointError
from .configuration import read_configuration
from .pickled import held

_KEYS = ("model_args", "config", "hyper_parameters", "hparams", "args", "model_config")


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
    name = getattr(template, "__name__", type(template).__name__)
    wanted = required(template)
    try:
        if not wanted:
            return template()
        settings = {} if path is None else _settings(path)
        if all(each in settings for each in wanted):
            return template(**_accepted(template, settings))
        if len(wanted) == 1 and settings:
            return template(_as_wanted(template, wanted[0], settings))
    except CheckpointError:
        raise
    except Exception as error:  # whatever the user's code raises
        raise ArgumentError(
            f"{name} cannot build the model: {type(error).__name__}: {error}"
        ) from error
    raise ArgumentError(
        f"{name} needs {', '.join(wanted)}, and the checkpoint holds no settings under "
        f"{', '.join(_KEYS)}: name a function without arguments that builds the model."
    )


def required(template: Callable[..., Any]) -> list[str]:
    """Return the arguments that must be given."""
    try:
        parameters = inspect.signature(template).parameters.values()
    except (TypeError, ValueError):  # of C code
        return []
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in parameters if p.kind in kinds and p.default is p.empty]


def _accepted(template: Callable[..., Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    names = inspect.signature(template).parameters
    return {name: value for name, value in settings.items() if name in names}


def _settings(path: Path) -> dict[str, Any]:
    """Return the settings that stand beside the weights, or in the folder's config.json."""
    if path.is_dir():
        return dict(read_configuration(path, whole=True) or {})
    content = held(path, _KEYS)
    for value in content.values():
        state = getattr(value, "state", None)
        table = value if isinstance(value, Mapping) and value else state
        if isinstance(table, Mapping) and table:
            return {str(key): each for key, each in table.items()}
    return {}


def _as_wanted(template: Callable[..., Any], name: str, settings: dict[str, Any]) -> Any:
    """Return settings as the dataclass that stands beside the class, else as plain settings."""
    hint = inspect.signature(template).parameters[name].annotation
    module = vars(sys.modules.get(template.__module__, object()) or object)
    beside = [c for c in module.values() if dataclasses.is_dataclass(c) and isinstance(c, type)]
    named = [c for c in (hint, *beside) if dataclasses.is_dataclass(c) and isinstance(c, type)]
    for cls in named:
        fields = {field.name for field in dataclasses.fields(cls) if field.init}
        if settings.keys() <= fields:
            return cls(**settings)
    return Settings(settings)
