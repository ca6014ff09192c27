"""All measures of two dictionaries at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..arrays import Array
from ..errors import ArgumentError, check_choice
from .correlations import column_weights, correlations_of
from .pair import give, pair_of
from .registry import MEASURES, measure_with

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
