"""Models of a user's class that is given its settings, as the checkpoint holds them."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from ...errors import ArgumentError, OntogenyError
from .configuration import read_configuration
from .pickled import held

_FIELDS = "__dataclass_fields__"
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
    required = _required(template)
    try:
        if not required:
            return template()
        settings = {} if path is None else _settings(path)
        if required.keys() <= settings.keys():
            names = inspect.signature(template).parameters
            return template(**{name: value for name, value in settings.items() if name in names})
        if len(required) == 1 and settings:
            return template(_as_wanted(template, required.popitem()[1], settings))
    except OntogenyError:
        raise
    except Exception as error:  # whatever the user's code raises
        raise ArgumentError(
            f"{name} cannot build the model: {type(error).__name__}: {error}"
        ) from error
    raise ArgumentError(
        f"{name} needs {', '.join(required)}, and the checkpoint holds no settings under "
        f"{', '.join(_KEYS)}: name a function without arguments that builds the model."
    )


def _required(template: Callable[..., Any]) -> dict[str, Any]:
    """Return the arguments that must be given, with their annotations."""
    try:
        parameters = inspect.signature(template).parameters.values()
    except ValueError:  # of a builtin, such as dict, which is called without arguments
        return {}
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = (p for p in parameters if p.default is p.empty and p.kind not in several)
    return {p.name: p.annotation for p in needed}


def _settings(path: Path) -> dict[str, Any]:
    """Return the settings that stand beside the weights, or in the folder's config.json."""
    if path.is_dir():
        return dict(read_configuration(path, whole=True) or {})
    for value in held(path, _KEYS).values():
        table = value if isinstance(value, Mapping) and value else getattr(value, "state", None)
        if isinstance(table, Mapping) and table:
            return {str(key): setting for key, setting in table.items()}
    return {}


def _as_wanted(template: Callable[..., Any], hint: Any, settings: dict[str, Any]) -> Any:
    """Return settings as the dataclass that stands beside the class, else as plain settings."""
    beside = vars(sys.modules[template.__module__]).values()
    for cls in (hint, *beside):
        fields = dataclasses.fields(cls) if isinstance(cls, type) and hasattr(cls, _FIELDS) else ()
        if settings.keys() <= {field.name for field in fields}:
            return cls(**settings)
    return Settings(settings)
