"""The nine distances by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..arrays import Array
from ..errors import check_choice, check_known
from . import covariances, norms, rotations
from .pair import measured

# Each takes a `Pair` and its options and gives one number for every member.
MEASURES: dict[str, Callable[..., Array]] = {
    "frobenius": norms.frobenius_of,
    "spectral": norms.spectral_of,
    "nuclear": norms.nuclear_of,
    "entrywise": norms.entrywise_of,
    "procrustes": rotations.procrustes_of,
    "schatten": norms.schatten_of,
    "matrix-log": covariances.matrix_log_of,
    "grassmann": covariances.grassmann_of,
    "bures": covariances.bures_of,
}
OF_ANY_R = ("matrix-log", "grassmann", "bures")
"""Measures of W W^T and V V^T, which compare dictionaries with different numbers of concepts."""


def names() -> tuple[str, ...]:
    """Return the names of the nine distances.

    Examples
    --------
    >>> names()[:3]
    ('frobenius', 'spectral', 'nuclear')
    """
    return tuple(MEASURES)


def distance(name: str, W: Array, V: Array, **options: Any) -> Any:
    """Return the distance of that name between two dictionaries.

    Parameters
    ----------
    name
        One of `names`.
    W, V
        Dictionaries of shape (..., m, r), NumPy or PyTorch. For ``"matrix-log"``, ``"grassmann"``
        and ``"bures"`` their r may differ; the others compare columns one with another.
    **options
        ``p`` of ``"entrywise"`` (default 1) and ``"schatten"`` (1.5), ``eps`` of ``"matrix-log"``
        and ``"bures"`` (1e-6), ``rank_tolerance`` of ``"grassmann"``.

    Returns
    -------
    float, or an array of shape (...)
        See the function of the same name for definition, units and source.

    Raises
    ------
    ArgumentError
        If the name, a shape or an option is wrong.

    Examples
    --------
    >>> distance("entrywise", [[3.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]], p=2)
    5.0
    """
    return measured(measure_with(name, options), W, V, any_r=name in OF_ANY_R)


def measure_with(name: str, options: Mapping[str, Any]) -> Callable[..., Array]:
    """Return the measure of that name with its options checked and bound."""
    measure = MEASURES[check_choice("name", name, MEASURES)]
    allowed = tuple(inspect.signature(measure).parameters)[1:]
    check_known(f"distance {name!r}", "option", options, allowed)
    return functools.partial(measure, **options)
