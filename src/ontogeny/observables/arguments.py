"""Whether values are of the kinds that a dataclass or a table declares, said in plain words."""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..capture.layers import check_patterns
from ..errors import LARGEST_WHOLE, ArgumentError, check_choice, check_whole

# Refits count on from a seed, and scikit-learn's end at 2**32 - 1.
_LARGEST_SEED = 2**31 - 1
_LONGEST_NAME = 100  # bytes: names of nodes become names of folders

_PATTERNS = ("layers", "blocks")
_MANY = {int: "whole numbers", float: "numbers", str: "texts"}
_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    type(None): "None",
}


def as_fields(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as a dataclass's annotations want them.

    Sequences, and lone values where several are wanted, become tuples; NumPy's numbers become
    Python's.

    Raises
    ------
    ArgumentError
        If one is of another kind, a number is NaN or has more than 64 bits, a text is empty, or a
        seed or a label is not what it must be.

    Examples
    --------
    >>> from ontogeny.observables import Loss, SaeProbe
    >>> as_fields(SaeProbe, {"marker_ids": 8, "k": 4})
    {'marker_ids': (8,), 'k': 4}
    >>> as_fields(Loss, {"random_state": "8"})
    Traceback (most recent call last):
    ontogeny.errors.ArgumentError: random_state must be a whole number; got '8'.
    """
    hints = _hints(cls)
    empty = {f.name for f in dataclasses.fields(cls) if f.default == ""}
    result = {}
    for name, value in values.items():
        hint = hints.get(name, Any)
        value = _plain(value) if hint is not Any else value
        if typing.get_origin(hint) is tuple and typing.get_args(hint)[-1:] == (...,):
            value = (value,) if _fits(value, typing.get_args(hint)[0]) else value
        check_kind("", name, value, hint)
        if name not in empty and _has_empty_text(value):
            raise ArgumentError(f"{name} must not be empty; got {value!r}.")
        if name in _PATTERNS and _takes_text(hint) and _is_text(value):
            check_patterns(value, name)
        if name == "label" and value is not None:
            check_node(name, value)
        result[name] = value
    return result


def check_kind(where: str, name: str, value: Any, hint: Any) -> None:
    """Check one value against a type hint; lists pass for tuples, whole numbers for numbers.

    Raises
    ------
    ArgumentError
        If it is of another kind, NaN, longer than 64 bits, or no seed.

    Examples
    --------
    >>> check_kind("[inputs]", "max_length", 128, int)
    """
    where = f"{where} " if where else ""
    if not _fits(value, hint):
        huge = isinstance(value, int) and abs(value) > LARGEST_WHOLE
        bits = " of at most 64 bits" if huge else ""
        raise ArgumentError(
            f"{where}{name} must be {_words(hint)}{bits}; got {value!r}."
        )
    if name == "random_state" and not 0 <= value <= _LARGEST_SEED:
        raise ArgumentError(
            f"{where}{name} must be a whole number of at least 0 and at most {_LARGEST_SEED}; "
            f"got {value!r}."
        )


def check_names(
    name: str,
    values: Sequence[str],
    allowed: Collection[str] | None = None,
    minimum: int = 1,
) -> None:
    """Check a list of names: at least so many, none of them twice, all of them `allowed`.

    Raises
    ------
    ArgumentError
        If it is not such a list.

    Examples
    --------
    >>> check_names("methods", ["likelihood"], ["regression", "likelihood"])
    """
    for value in values:
        if allowed is not None:
            check_choice(name, value, allowed)
    if len(values) < minimum:
        raise ArgumentError(f"{name} must name at least {minimum}; got {values!r}.")
    if len(set(values)) < len(values):
        raise ArgumentError(f"{name} must not name anything twice; got {values!r}.")


def check_wholes(
    name: str, values: Sequence[int], *, minimum: int = 1, fewest: int = 0
) -> None:
    """Check a list of `fewest` or more whole numbers, each of at least `minimum`, none twice.

    Raises
    ------
    ArgumentError
        If it is not such a list.

    Examples
    --------
    >>> check_wholes("top", (1, 2, 4))
    """
    for value in values:
        check_whole(f"each of {name}", value, minimum)
    if len(values) < fewest:
        raise ArgumentError(
            f"{name} must hold at least {fewest} whole number; got {values!r}."
        )
    if len(set(values)) < len(values):
        raise ArgumentError(f"{name} must not hold a number twice; got {values!r}.")


def check_node(name: str, value: str) -> None:
    """Check what is to be, or to be found under, the name of a node.

    Raises
    ------
    ArgumentError
        If it is no name of a node.

    Examples
    --------
    >>> check_node("of", "concepts-ica")
    """
    is_name = isinstance(value, str) and re.fullmatch(r"\w[\w.-]*", value)
    if not is_name or len(value.encode()) > _LONGEST_NAME:
        raise ArgumentError(
            f"{name} must be a name of letters, digits, '-', '_' and '.', of at most "
            f"{_LONGEST_NAME} bytes; got {value!r}."
        )


@cache
def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except (NameError, TypeError):
        # Annotations of somebody else that cannot be resolved.
        return {}


def _plain(value: Any) -> Any:
    """Return sequences, also inner ones, as tuples, and NumPy's numbers as Python's."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim):
        value = value.tolist()
    return tuple(_plain(item) for item in value) if _is_list(value) else value


def _is_list(value: Any) -> bool:
    text = isinstance(value, str | bytes | bytearray | memoryview)
    return isinstance(value, Sequence) and not text


def _takes_text(hint: Any) -> bool:
    """Return whether a hint takes text or a list of texts, as ``tuple[int, ...]`` does not."""
    return hint in (Any, str) or any(map(_takes_text, typing.get_args(hint)))


def _is_text(value: Any) -> bool:
    """Return whether a value is text or a list of nothing else."""
    return all(
        isinstance(text, str) for text in (value if _is_list(value) else (value,))
    )


def _has_empty_text(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_has_empty_text(item) for item in value)
    return isinstance(value, str) and not value.strip()


def _fits(value: Any, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    parts = typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is tuple:
        if not _is_list(value):
            return False
        inner = parts[:1] * len(value) if parts[-1:] == (...,) else parts
        return len(inner) == len(value) and all(map(_fits, value, inner))
    if hint is int or hint is float:
        return _fits_number(value, hint)
    expected = origin if isinstance(origin, type) else hint
    if not isinstance(expected, type):
        return True
    if not isinstance(value, expected):
        return False
    return not isinstance(value, Mapping) or all(
        isinstance(key, str) and key for key in value
    )


def _fits_number(value: Any, hint: type) -> bool:
    numbers = (
        (int, np.integer) if hint is int else (int, float, np.integer, np.floating)
    )
    if isinstance(value, bool) or not isinstance(value, numbers):
        return False
    if isinstance(value, int | np.integer):
        return -LARGEST_WHOLE <= int(value) <= LARGEST_WHOLE
    return not math.isnan(value)


def _words(hint: Any) -> str:
    origin = typing.get_origin(hint)
    parts = typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_words(part) for part in parts)
    if origin is tuple:
        several = parts[-1:] == (...,)
        return (
            f"a list of {_many(parts[0])}"
            if several
            else f"a list of {len(parts)} values"
        )
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a table of named values"
    return _WORDS.get(hint, getattr(hint, "__name__", str(hint)))


def _many(hint: Any) -> str:
    if typing.get_origin(hint) is tuple:
        return f"lists of {len(typing.get_args(hint))} values"
    return _MANY.get(hint, _words(hint))
