"""One node of a result, from stacked cells to what the page and the reader are given."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import xarray as xr

from ..figures import Figure, Section, attach
from ..quantities import Quantity
from ..words.names import Names
from ..words.one_model import is_one_model
from .controls import of_controls, with_control_bands
from .figures import default_figures, figures_of_one, plain_figures
from .noise import null_bands, with_noise
from .rows import chart_rows


def derived(data: xr.Dataset, quantities: Sequence[Quantity]) -> xr.Dataset:
    """Add intervals, floors, bands, chart rows and symbols of the quantities that are there."""
    for quantity in quantities:
        if quantity.name in data:
            data = null_bands(with_noise(data, quantity), quantity)
            if quantity.nulls:
                nulls = json.dumps(dict(quantity.nulls))
                data[quantity.name].attrs.update(nulls=nulls)
            if quantity.several:
                data[quantity.name].attrs.update(several=1)
            if quantity.symbol:
                data[quantity.name].attrs.update(symbol=quantity.symbol)
    return data if is_one_model(data) else data.assign(chart_rows(data, quantities))


def summarise(
    data: xr.Dataset,
    quantities: Sequence[Quantity],
    section: Section,
    *,
    figures: Callable[[xr.Dataset], Sequence[Figure]] = lambda _: (),
    words: Callable[[xr.Dataset], Sequence[str]] = lambda _: (),
    role: str = "development",
    names: Names | None = None,
) -> xr.Dataset:
    """Return stacked cells with all that follows from the quantities, and its figures and words.

    Parameters
    ----------
    data
        Cells along ``step``.
    quantities
        What they hold.
    section
        Heading and margin notes.
    figures, words
        From the data with all that was derived to what is special about the node; it stands after
        the figures of its quantities.
    role
        What the rows mean, see `ontogeny.figures.base`.
    names
        What further variables are: those over steps and layers are drawn where there is neither a
        quantity nor a figure.

    Examples
    --------
    >>> data = xr.Dataset(
    ...     {"x": ("step", [8.0, 4.0]), "x_stderr": 0.1}, {"step": [0, 9]}
    ... )
    >>> sorted(
    ...     summarise(
    ...         data, [Quantity("x", "loss")], Section("Loss", "Mean loss.")
    ...     ).data_vars
    ... )
    ['x', 'x_floor', 'x_high', 'x_low', 'x_stderr']
    """
    quantities = [of_controls(data, quantity) for quantity in quantities]
    data = derived(data, quantities)
    one = is_one_model(data)
    all_figures = [*default_figures(data, quantities), *figures(data)]
    if one:
        all_figures = figures_of_one(quantities, all_figures)
    if not all_figures and not quantities:
        all_figures += plain_figures(data, names or {})
    data, all_figures = with_control_bands(data, all_figures)
    return attach(data, section, all_figures, words(data), role)
