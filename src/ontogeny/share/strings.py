"""Texts in plain data, also those in texts that are JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any


def in_strings(value: Any, change: Callable[[str], str]) -> Any:
    """Return data with all its texts changed, also those in a text that is JSON."""
    if isinstance(value, Mapping):
        return {k: in_strings(v, change) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [in_strings(v, change) for v in value]
    if not isinstance(value, str):
        return value
    if value[:1] in ("{", "["):
        try:
            return json.dumps(in_strings(json.loads(value), change))
        except ValueError:
            pass
    return change(value)


def strings(value: Any) -> Iterator[str]:
    """Yield the texts in plain data.

    Examples
    --------
    >>> list(strings({"a": ["b", 1], "c": {"d": "e"}}))
    ['b', 'e']
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from strings(item)
