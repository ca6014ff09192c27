"""Whether values are of the kinds that a dataclass or a table declares, said in plain words."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError

__all__ = ["as_fields", "check_kind"]

_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    type(None): "None",
}


def as_fields(where: str, cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as a dataclass's annotations want them: lists, and lone values, as tuples.

    Raises
    ------
    ArgumentError
        If one is of another kind, a number is NaN, or a seed is negative.

    Examples
    --------
    >>> from ontogeny.observables import Loss, SaeProbe
    >>> as_fields("sae-probe", SaeProbe, {"marker_ids": 8, "k": 4})
    {'marker_ids': (8,), 'k': 4}
    >>> as_fields("loss:", Loss, {"random_state": "8"})
    Traceback (most recent call last):
    ontogeny.errors.ArgumentError: loss: random_state must be a whole number; got '8'.
    """
    try:
        hints = typing.get_type_hints(cls)
    except (NameError, TypeError):  # annotations of somebody else that cannot be resolved
        hints = {}
    result = {}
    for name, value in values.items():
        hint = hints.get(name, Any)
        value = tuple(value) if isinstance(value, list) else value
        if typing.get_origin(hint) is tuple and typing.get_args(hint)[-1:] == (...,):
            value = (value,) if _fits(value, typing.get_args(hint)[0]) else value
        check_kind(where, name, value, hint)
        result[name] = value
    return result


def check_kind(where: str, name: str, value: Any, hint: Any) -> None:
    """Check one value against a type hint; lists pass for tuples, whole numbers for numbers.

    Raises
    ------
    ArgumentError
        If it is of another kind, NaN, or a negative seed.

    Examples
    --------
    >>> check_kind("[inputs]", "max_length", 128, int)
    """
    if not _fits(value, hint):
        raise ArgumentError(f"{where} {name} must be {_words(hint)}; got {value!r}.")
    if name == "random_state" and value < 0:
        raise ArgumentError(f"{where} {name} must be a whole number of at least 0; got {value!r}.")


def _fits(value: Any, hint: Any) -> bool:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is tuple:
        if isinstance(value, str) or not isinstance(value, Sequence):
            return False
        inner = parts[:1] * len(value) if parts[-1:] == (...,) else parts
        return len(inner) == len(value) and all(map(_fits, value, inner))
    if hint is int or hint is float:
        numbers = (int, np.integer) if hint is int else (int, float, np.number)
        whole = isinstance(value, numbers) and not isinstance(value, bool)
        return whole and not (hint is float and math.isnan(value))
    known = origin if isinstance(origin, type) else hint
    return not isinstance(known, type) or isinstance(value, known)


def _words(hint: Any) -> str:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_words(part) for part in parts)
    if origin is tuple:
        several = parts[-1:] == (...,)
        return f"a list of {_words(parts[0])}" if several else f"{len(parts)} values in a list"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a table"
    return _WORDS.get(hint, getattr(hint, "__name__", str(hint)))
