"""Figure specifications put on a dataset, checked against it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import xarray as xr

from ..errors import check_choice
from .base import Figure, Section

ROLES = ("development", "motion", "track", "regimes", "claims", "runs")


def attach(
    dataset: xr.Dataset,
    section: Section,
    figures: Sequence[Figure],
    statements: Sequence[str] = (),
    role: str = "development",
) -> xr.Dataset:
    """Return `dataset` with its section, figures and sentences as JSON attributes.

    `role` says what the rows of the node mean in the developmental chart: ``"development"`` (they
    count in the page's verdict), ``"motion"`` (weight change; says nothing of function by itself),
    ``"track"`` (also the loss curve under the step slider), ``"regimes"`` (as development; the
    shared boundaries of its curves are drawn through the chart and all figures over steps),
    ``"claims"`` (no rows: its variable ``answer`` over claims is what the page's heading counts) or
    ``"runs"`` (what a comparison says of its runs; stands first).

    Raises
    ------
    ArgumentError
        If a figure names a variable or dimension that `dataset` lacks, a table's column has a
        dimension beyond its rows, or `role` is unknown.

    Examples
    --------
    >>> from ontogeny.figures import Curves
    >>> data = xr.Dataset({"loss": ("step", [8.3, 4.2])}, coords={"step": [0, 100]})
    >>> figure = Curves("loss", "Loss on fixed text", value="loss", series=None)
    >>> sorted(attach(data, Section("Loss", "Mean loss."), [figure]).attrs)
    ['figures', 'role', 'section', 'statements']
    """
    check_choice("role", role, ROLES)
    for figure in figures:
        figure.check(dataset)
    return dataset.assign_attrs(
        section=json.dumps(asdict(section)),
        figures=json.dumps([f.to_dict() for f in figures]),
        statements=json.dumps(list(statements)),
        role=role,
    )


def extend(
    dataset: xr.Dataset, figures: Sequence[Figure] = (), statements: Sequence[str] = ()
) -> xr.Dataset:
    """Return a dataset that has a section with further figures and sentences behind its own.

    Examples
    --------
    >>> data = attach(xr.Dataset(), Section("Loss", "Mean loss."), [], ["It fell."])
    >>> extend(data, statements=["Then it rose."]).attrs["statements"]
    '["It fell.", "Then it rose."]'
    """
    for figure in figures:
        figure.check(dataset)
    lists = {name: json.loads(dataset.attrs[name]) for name in ("figures", "statements")}
    return dataset.assign_attrs(
        figures=json.dumps([*lists["figures"], *(f.to_dict() for f in figures)]),
        statements=json.dumps([*lists["statements"], *statements]),
    )
