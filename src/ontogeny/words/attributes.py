"""Attributes of a merged result that hold JSON, checked as they are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .formats import plain_text


def attribute(attrs: Mapping[Any, Any], name: str, default: Any, owner: str) -> Any:
    """Return an attribute that holds JSON; what is already plain data is taken as it is."""
    value = attrs.get(name, default)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, str):
        return _plain(value)
    try:
        value = json.loads(value) if value else default
    except (json.JSONDecodeError, RecursionError) as error:
        raise ArgumentError(
            f"attribute {name!r} of {owner} must hold JSON; it starts with {value[:40]!r} "
            f"({getattr(error, 'msg', error)})."
        ) from None
    if default is not None and not isinstance(value, type(default)):
        raise ArgumentError(
            f"attribute {name!r} of {owner} must be a JSON {type(default).__name__}; "
            f"got {type(value).__name__}."
        )
    return _plain(value)


def _plain(value: Any) -> Any:
    """Return JSON data with all its texts plain; labels of a selection must stay as they are."""
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, Mapping):
        return {_plain(k): v if k == "select" else _plain(v) for k, v in value.items()}
    return (
        [_plain(item) for item in value] if isinstance(value, list | tuple) else value
    )


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return an entry of a list as a mapping; a name alone is one that has no more."""
    return value if isinstance(value, Mapping) else {"name": value}
