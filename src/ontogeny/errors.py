"""What can go wrong, and how it is said: the rule, what came, what to do.

::

    OntogenyError
    ├── ArgumentError        (ValueError)    an argument is not what it must be
    ├── LayerMatchError      (ValueError)    a layer pattern matches no module
    ├── CheckpointError      (RuntimeError)  a checkpoint cannot be read as what it says it is
    ├── BatchInvarianceError (RuntimeError)  a model's result depends on what a text is batched with
    ├── NonFiniteError       (ValueError)    NaN or infinity where numbers must be finite
    └── StoreError           (RuntimeError)  a study folder is not usable
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from numbers import Integral, Real

__all__ = [
    "ArgumentError",
    "BatchInvarianceError",
    "CheckpointError",
    "LayerMatchError",
    "NonFiniteError",
    "OntogenyError",
    "StoreError",
    "check_choice",
    "check_number",
    "check_whole",
    "suggestion",
]


class OntogenyError(Exception):
    """Any error that ontogeny raises on purpose; the command shows its text as one line."""


class ArgumentError(OntogenyError, ValueError):
    """An argument is not what it must be."""


class LayerMatchError(OntogenyError, ValueError):
    """A layer pattern matches no module of the model."""


class CheckpointError(OntogenyError, RuntimeError):
    """A checkpoint is missing, incomplete, or not the model that it is read as."""


class BatchInvarianceError(OntogenyError, RuntimeError):
    """A model gives a text another result in another batch, so padding would leak into it."""


class NonFiniteError(OntogenyError, ValueError):
    """NaN or infinity stands where every number must be finite."""


class StoreError(OntogenyError, RuntimeError):
    """A study folder is unreadable, incomplete, or belongs to another study."""


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
    choices = ", ".join(repr(a) for a in allowed)
    raise ArgumentError(
        f"{name} must be one of {choices}; got {given!r}.{suggestion(str(given), allowed)}"
    )


def check_whole(name: str, value: object, least: int = 1) -> int:
    """Return `value` as an integer if it is a whole number of at least `least`.

    Raises
    ------
    ArgumentError
        If it is a boolean, a float (also NaN), anything else that is no integer, or too small.

    Examples
    --------
    >>> check_whole("k", 3)
    3
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ArgumentError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return int(value)


def check_number(
    name: str,
    value: object,
    least: float = 0.0,
    most: float = math.inf,
    *,
    above: bool = False,
    below: bool = False,
) -> float:
    """Return `value` as a finite number from `least` to `most`, or `above` and `below` them.

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
    low = number is not None and (number > least if above else number >= least)
    if number is not None and low and (number < most if below else number <= most):
        return number
    wanted = f"above {least:g}" if above else f"of at least {least:g}"
    wanted = "" if least == -math.inf else f" {wanted}"
    if most < math.inf:
        wanted += f"{' and' * bool(wanted)} {'below' if below else 'at most'} {most:g}"
    raise ArgumentError(f"{name} must be a finite number{wanted}; got {value!r}.")


def _finite(value: object) -> float | None:
    """Return a number as a float, None where it is none, NaN or too large for one."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
