"""The nine distances by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..arrays import Array
from ..errors import ArgumentError, check_choice, check_known
from . import covariances, norms, rotations
from .correlations import column_weights, correlations_of
from .pair import give, measured, pair_of

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
# Measures of W W^T and V V^T, which compare dictionaries with different numbers of concepts.
OF_ANY_R = ("matrix-log", "grassmann", "bures")


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


Options = Mapping[str, Mapping[str, Any]]


def compare(
    W: Array,
    V: Array,
    U: Array | None = None,
    *,
    measures: Sequence[str] | None = None,
    options: Options | None = None,
) -> dict[str, Any]:
    """Compare two dictionaries by the nine distances and the four correlations.

    Parameters
    ----------
    W, V
        Dictionaries of shape (..., m, r), NumPy or PyTorch.
    U
        Codes that belong to W, (..., n, r); without them ``"weighted"`` is left out.
    measures
        Names of the distances and correlations that are wanted; None for all that there are.
    options
        Options of single distances, such as ``{"schatten": {"p": 3}, "bures": {"eps": 1e-4}}``.

    Returns
    -------
    dict
        Name to number, or to an array of shape (...): the nine of `names`, then the
        `correlation` names. ``"internal"`` is that of W.

    Raises
    ------
    ArgumentError
        If a shape, a name or an option is wrong. ``NonFiniteError`` if an entry is NaN or infinite.

    Notes
    -----
    The thin SVDs of W and V, their overlap and the spectrum of W - V serve all of them: together
    all thirteen cost about five thin SVDs of one dictionary. With one column there is no
    ``"internal"``.

    Examples
    --------
    >>> values = compare([[3.0, 0.0], [0.0, 4.0]], [[0.0, 3.0], [4.0, 0.0]])
    >>> round(values["frobenius"], 4), round(values["procrustes"], 4), values["optimal"]
    (7.0711, 0.0, 1.0)
    """
    bound = bound_measures(options)
    pair, argument = pair_of(W, V)
    weights = None if U is None else column_weights(U, argument)
    by_name: dict[str, Callable[[], Array]]
    by_name = {name: partial(measure, pair) for name, measure in bound.items()}
    by_name |= correlations_of(pair, weights)
    names = tuple(by_name) if measures is None else measures
    for name in names:
        if name == "weighted" and U is None:
            raise ArgumentError("measures: 'weighted' needs the codes U of W.")
        check_choice("a name in measures", name, by_name)
    return {name: give(by_name[name](), argument) for name in names}


def bound_measures(options: Options | None) -> dict[str, Callable[..., Array]]:
    """Return all nine measures with their options bound."""
    options = options or {}
    for name in options:
        check_choice("a name in options", name, MEASURES)
    return {name: measure_with(name, options.get(name, {})) for name in MEASURES}
