"""What can go wrong, and how it is said: the rule, what came, what to do.

::

    OntogenyError
    ├── ArgumentError        (ValueError)    an argument is not what it must be
    ├── LayerMatchError      (ValueError)    a layer pattern matches no module
    ├── CheckpointError      (RuntimeError)  a checkpoint cannot be read as what it says it is
    ├── BatchInvarianceError (RuntimeError)  a model's result depends on what a text is batched with
    ├── NonFiniteError       (ValueError)    NaN or infinity where numbers must be finite
    ├── StoreError           (RuntimeError)  a study folder is not usable
    └── MissingExtraError    (ImportError)   a library that only some uses need is not installed

What a study says although it goes on is a `StudyWarning` (UserWarning).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

# The largest whole number of 64 bits: what arrays, results and study files can hold.
LARGEST_WHOLE = 2**63 - 1
# Allowed names that are too many to list, and how many are named then.
_LONG = 20
_LISTED = 5

__all__ = [
    "OntogenyError",
    "ArgumentError",
    "LayerMatchError",
    "CheckpointError",
    "TooFewCheckpointsError",
    "BatchInvarianceError",
    "NonFiniteError",
    "StoreError",
    "MissingExtraError",
    "StudyWarning",
    "DenseCodesWarning",
]


class OntogenyError(Exception):
    """Any error that ontogeny raises on purpose; the command shows its text as one line."""

    exit_code = 1  # of the command that it ends


class ArgumentError(OntogenyError, ValueError):
    """An argument is not what it must be."""


class LayerMatchError(OntogenyError, ValueError):
    """A layer pattern matches no module of the model."""


class CheckpointError(OntogenyError, RuntimeError):
    """A checkpoint is missing, incomplete, or not the model that it is read as."""


class TooFewCheckpointsError(ArgumentError, CheckpointError):
    """There are fewer checkpoints than what is asked for takes; a run that trains may add some."""


class BatchInvarianceError(OntogenyError, RuntimeError):
    """A model gives a text another result in another batch, so padding would leak into it."""


class NonFiniteError(OntogenyError, ValueError):
    """NaN or infinity stands where every number must be finite."""


class StoreError(OntogenyError, RuntimeError):
    """A study folder is unreadable, incomplete, or belongs to another study."""


class MissingExtraError(OntogenyError, ImportError):
    """A library that only some uses need is not installed; the text says how to install it."""


class StudyWarning(UserWarning):
    """What a study must say although it goes on: cells that failed, or a reference that is old.

    Parameters
    ----------
    message
        What is so.
    in_python, in_command
        How the text ends for a caller in Python, and for a user of the command.

    Examples
    --------
    >>> warning = StudyWarning("2 of 9 cells failed", "; see `result.problems()`")
    >>> str(warning), warning.in_command
    ('2 of 9 cells failed; see `result.problems()`', '2 of 9 cells failed')
    """

    def __init__(self, message: str, in_python: str = "", in_command: str = "") -> None:
        super().__init__(f"{message}{in_python}")
        self.in_command = f"{message}{in_command}"


class DenseCodesWarning(UserWarning):
    """A sparse autoencoder was trained, but its codes are not sparse."""


def suggestion(given: str, allowed: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the nearest allowed name, or an empty string.

    Examples
    --------
    >>> suggestion("extracter", ["extractor", "layers"])
    " Did you mean 'extractor'?"
    """
    near = difflib.get_close_matches(str(given), list(allowed), n=1, cutoff=0.55)
    return f" Did you mean '{near[0]}'?" if near else ""


def check_choice(name: str, given: object, allowed: Iterable[str]) -> str:
    """Return `given` if it is one of `allowed`, else say what is allowed.

    Raises
    ------
    ArgumentError
        If `given` is not one of the allowed strings.

    Examples
    --------
    >>> check_choice("spacing", "log", ["log", "linear"])
    'log'
    """
    allowed = list(allowed)
    if isinstance(given, str) and given in allowed:
        return given
    choices = ", ".join(
        repr(a) for a in allowed[: _LISTED if len(allowed) > _LONG else None]
    )
    more = f" and {len(allowed) - _LISTED} more" if len(allowed) > _LONG else ""
    raise ArgumentError(
        f"{name} must be one of {choices}{more}; got {given!r}.{suggestion(str(given), allowed)}"
    )


def check_known(
    what: str, noun: str, given: Iterable[str], allowed: Iterable[str]
) -> None:
    """Check that all names given to `what`, each of a `noun`, are among those it has.

    Raises
    ------
    ArgumentError
        If one is not.

    Examples
    --------
    >>> check_known("ica", "option", ["funn"], ["fun", "tol"])
    Traceback (most recent call last):
    ontogeny.errors.ArgumentError: ica has no option 'funn'; it has fun, tol. Did you mean 'fun'?
    """
    allowed = list(allowed)
    for name in given:
        if name not in allowed:
            raise ArgumentError(
                f"{what} has no {noun} {name!r}; it has {', '.join(allowed) or 'none'}."
                f"{suggestion(name, allowed)}"
            )


def check_whole(
    name: str, value: object, minimum: int = 1, maximum: int = LARGEST_WHOLE
) -> int:
    """Return `value` as an integer if it is a whole number from `minimum` to `maximum`.

    Raises
    ------
    ArgumentError
        If it is a boolean, a float (also NaN), anything else that is no integer, or out of range.

    Examples
    --------
    >>> check_whole("k", 3)
    3
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not minimum <= value <= maximum:  # type: ignore[operator]
        bounded = maximum < LARGEST_WHOLE or (whole and value > maximum)  # type: ignore[operator]
        top = f" and at most {maximum}" if bounded else ""
        raise ArgumentError(
            f"{name} must be a whole number of at least {minimum}{top}; got {value!r}."
        )
    return int(value)  # type: ignore[call-overload]


def check_number(
    name: str,
    value: object,
    minimum: float = 0.0,
    maximum: float = math.inf,
    *,
    above: bool = False,
    below: bool = False,
) -> float:
    """Return `value` as a finite number from `minimum` to `maximum`, or `above` and `below` them.

    Raises
    ------
    ArgumentError
        If it is no number, not finite, or out of range.

    Examples
    --------
    >>> check_number("ridge", 0)
    0.0
    >>> check_number("fraction", 1, 0, 1, above=True, below=True)
    Traceback (most recent call last):
    ontogeny.errors.ArgumentError: fraction must be a finite number above 0 and below 1; got 1.
    """
    number = _finite(value)
    low = number is not None and (number > minimum if above else number >= minimum)
    if (
        number is not None
        and low
        and (number < maximum if below else number <= maximum)
    ):
        return number
    bounds = f"above {minimum:g}" if above else f"of at least {minimum:g}"
    bounds = "" if minimum == -math.inf else f" {bounds}"
    if maximum < math.inf:
        bounds += " and" if bounds else ""
        bounds += f" below {maximum:g}" if below else f" at most {maximum:g}"
    raise ArgumentError(f"{name} must be a finite number{bounds}; got {value!r}.")


def _finite(value: object) -> float | None:
    """Return a number as a float, None where it is none, NaN or too large for one."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def check_flag(name: str, value: object) -> bool:
    """Return `value` if it is True or False.

    Raises
    ------
    ArgumentError
        If it is anything else.

    Examples
    --------
    >>> check_flag("centred", True)
    True
    """
    if not isinstance(value, bool | np.bool_):
        raise ArgumentError(f"{name} must be True or False; got {_text(value)}.")
    return bool(value)


def check_iterable(name: str, value: object, what: str) -> Iterator[Any]:
    """Return an iterator over `value`, which must hold several of `what`.

    A text is not taken for a list of its letters, nor a table for a list of its keys.

    Raises
    ------
    ArgumentError
        If it is text, bytes, a mapping, or cannot be iterated over.

    Examples
    --------
    >>> list(check_iterable("ks", range(2), "whole numbers"))
    [0, 1]
    >>> check_iterable("words", "cat", "words")
    Traceback (most recent call last):
    ontogeny.errors.ArgumentError: words must be a list of words; got 'cat'.
    """
    if not isinstance(value, str | bytes | bytearray | memoryview | Mapping):
        try:
            return iter(value)  # type: ignore[call-overload]
        except TypeError:
            pass
    raise ArgumentError(f"{name} must be a list of {what}; got {_text(value)}.")


def check_texts(name: str, value: object, what: str) -> list[str]:
    """Return `value` as a list if it is a list of texts, such as words or names.

    Raises
    ------
    ArgumentError
        If it is no list, or an entry of it is no text.

    Examples
    --------
    >>> check_texts("words", ("cat", "dog"), "words")
    ['cat', 'dog']
    """
    texts = list(check_iterable(name, value, what))
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ArgumentError(
                f"{name} must be a list of {what}; entry {i} is {_text(text)}."
            )
    return texts


def check_type(name: str, value: object, *kinds: type) -> None:
    """Check that `value` is of one of some classes.

    Raises
    ------
    ArgumentError
        If it is not.

    Examples
    --------
    >>> check_type("labels", {"june": "month"}, Mapping)
    """
    if not isinstance(value, kinds):
        types = " or ".join(
            "None" if kind is type(None) else kind.__name__ for kind in kinds
        )
        raise ArgumentError(f"{name} must be of type {types}; got {_text(value)}.")


def _text(value: object) -> str:
    """Return a short value as Python writes it, of a long one its type."""
    text = repr(value)
    return text if len(text) <= 60 and "\n" not in text else f"a {type(value).__name__}"
