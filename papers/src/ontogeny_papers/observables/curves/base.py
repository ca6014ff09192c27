"""Observables of the curves that other observables found: one series a layer."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.errors import ArgumentError, suggestion
from ontogeny.figures.base import extend
from ontogeny.needs import Need
from ontogeny.observables.arguments import check_node
from ontogeny.observables.base import Observable
from ontogeny.observables.catalogued import SECONDS
from ontogeny.summary.noise import MEASURABLE, Z, reference_index
from ontogeny.trees import Nodes

WHOLE_MODEL = "model"
"""The one layer of curves of nodes that have none, such as the loss."""


@dataclass(frozen=True)
class OfCurve(Observable):
    """An observable of one variable of another node, layer by layer.

    It reads what the study has stacked and summarised, so that any variable along ``step`` will
    do, whatever the other node was computed from: activations, attention, weights, or again
    other nodes. It has no cells of its own.

    Parameters
    ----------
    of
        Name of the other node. One without layers, such as the loss, has a single curve, of the
        layer ``"model"``; the weight blocks of one that has those stand as layers.
    variable
        Name of its variable along ``step``.
    select
        One label for each further dimension of the variable; default: the Procrustes distance with
        the rotation removed, where the variable has such labels, else the first label.
    first, last
        Use only steps from `first` to `last`, such as one regime, or the part of the checkpoints
        that is evenly spaced; ``None`` for all.
    label
        Name of the node, where a study holds this kind twice for one node.
    """

    of: str
    variable: str = "relative_distance"
    select: Mapping[str, Any] = field(default_factory=dict, hash=False)
    first: int | None = None
    last: int | None = None

    requires = "a node with curves"
    price = SECONDS
    minima = {"first": 0, "last": 0}

    def check(self) -> None:
        """Refuse arguments out of range."""
        check_node("of", self.of)
        if self.first is not None and self.last is not None and self.first >= self.last:
            raise ArgumentError(
                f"first must be before last; got {self.first} and {self.last}."
            )
        check_labels("select", self.select)

    @property
    def name(self) -> str:
        """The label, or the other node's name with this kind behind it."""
        return self.label or f"{self.of}-{self.kind}"

    @property
    def depends_on(self) -> tuple[str, ...]:  # type: ignore[override]
        """The other node."""
        return (self.of,)

    def needs(self) -> Sequence[Need]:
        """Return nothing: no checkpoint is read."""
        return []

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return nothing; all follows from the other node, in `summarise`."""
        return xr.Dataset()

    def summarise(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add what the curves show, with figures and sentences."""
        data, words = self.examined(self.curves(data, nodes), nodes)
        return extend(super().summarise(data, nodes), statements=words)

    @abc.abstractmethod
    def examined(self, data: xr.Dataset, nodes: Nodes) -> tuple[xr.Dataset, list[str]]:
        """Return the curves with what follows from them, and sentences."""

    def curves(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return ``curve(step, layer)`` and its ``status(layer)``, with the attributes of `data`.

        With a field ``jointly``, ``curve(step, layer, <jointly>)``.

        Raises
        ------
        ArgumentError
            If the other node has no such variable, or it is no number at every step.
        """
        jointly = getattr(self, "jointly", "")
        curves = curves_of(
            nodes[self.of], self.of, self.variable, self.select, jointly=jointly
        )
        curves.attrs.update(long_name=self.variable.replace("_", " "))
        there = (
            curves.notnull().any([dim for dim in curves.dims if dim != "layer"]).values
        )
        status = np.where(there, "done", f"missing: {self.of} has no value").astype(
            object
        )
        return xr.Dataset(
            {"curve": curves, "status": ("layer", status)}, attrs=data.attrs
        )

    def tabulated(self, data: xr.Dataset) -> np.ndarray:
        """Return the curves (steps, layers, ...), NaN outside the chosen steps."""
        curves = np.array(
            data.curve.transpose("step", "layer", ...).values, dtype=float
        )
        steps = data.step.values
        low = steps[0] if self.first is None else self.first
        high = steps[-1] if self.last is None else self.last
        curves[(steps < low) | (steps > high)] = np.nan
        return curves


def curves_of(
    node: xr.Dataset,
    name: str,
    variable: str,
    select: Mapping[str, Any],
    *,
    jointly: str = "",
) -> xr.DataArray:
    """Return a node's variable as curves (step, layer), or (step, layer, `jointly`).

    Parameters
    ----------
    node, name
        The node and its name.
    variable, select
        See `OfCurve`.
    jointly
        A further dimension that stays.

    Raises
    ------
    ArgumentError
        If there is no such variable, it has no steps, or its values are no numbers.

    Examples
    --------
    >>> loss = xr.Dataset({"loss": ("step", [4.0, 3.0])}, coords={"step": [0, 10]})
    >>> curves_of(loss, "loss", "loss", {}).layer.values.tolist()
    ['model']
    """
    if variable not in node:
        names = [
            str(label) for label, series in node.data_vars.items() if _is_series(series)
        ]
        raise ArgumentError(
            f"{name!r} has no variable {variable!r}; along the steps it has "
            f"{', '.join(names) or 'none'}.{suggestion(variable, names)}"
        )
    values = node[variable]
    if not _is_series(values):
        raise ArgumentError(
            f"{variable!r} of {name!r} must be a number at every step; it has the dimensions "
            f"{values.dims} and holds {values.dtype}."
        )
    if "layer" not in values.dims and "block" in values.dims:
        values = values.rename(block="layer")
    if "layer" not in values.dims:
        values = values.expand_dims(layer=[WHOLE_MODEL])
    if jointly and jointly not in values.dims:
        raise ArgumentError(
            f"jointly must be a dimension of {variable!r}; got {jointly!r}, it has {values.dims}."
        )
    dims = ("step", "layer", jointly) if jointly else ("step", "layer")
    values = chosen(values, select, dims).transpose(*dims).reset_coords(drop=True)
    return values.astype(float)


def _is_series(values: xr.DataArray) -> bool:
    return "step" in values.dims and values.dtype.kind in "fiub"


_PREFERRED = {"distance": "procrustes", "alignment": "rotation removed"}


def chosen(
    values: xr.DataArray,
    select: Mapping[str, Any],
    dims: Sequence[str] = ("step", "layer"),
) -> xr.DataArray:
    """Return `values` at one label of each dimension but those that are kept.

    Raises
    ------
    ArgumentError
        If `select` names a dimension or a label that is not there.

    Examples
    --------
    >>> table = xr.DataArray([[1.0, 2.0]], dims=("step", "distance"))
    >>> table = table.assign_coords(distance=["frobenius", "procrustes"])
    >>> chosen(table, {}).values, chosen(table, {"distance": "frobenius"}).values
    (array([2.]), array([1.]))
    """
    for name in select:
        if name not in values.dims or name in dims:
            free = [str(dim) for dim in values.dims if dim not in dims]
            raise ArgumentError(
                f"select names {name!r}; the further dimensions of {values.name!r} are {free}."
            )
    for dim in [str(d) for d in values.dims if d not in dims]:
        labels = list(values[dim].values)
        label = select.get(dim, _PREFERRED.get(dim, labels[0]))
        if label not in labels:
            if dim in select:
                raise ArgumentError(
                    f"select[{dim!r}] must be one of {labels}; got {label!r}."
                )
            label = labels[0]
        values = values.isel({dim: labels.index(label)}, drop=True)
    return values


def curve_reference(data: xr.Dataset, curves: np.ndarray) -> int | None:
    """Return the position of the reference step where all curves (steps, ...) are 0 there.

    Distances to the reference are 0 at it by construction, and it is left out; other curves have
    an ordinary value there.
    """
    place = reference_index(data)
    if place is None:
        return None
    there = curves[place]
    largest = np.nanmax(np.abs(np.nan_to_num(curves)), axis=0)
    by_construction = np.isnan(there) | (np.abs(there) <= MEASURABLE * largest)
    return place if bool(by_construction.all()) else None


def floor_of(
    node: xr.Dataset, variable: str, select: Mapping[str, Any], layers: Sequence[str]
) -> np.ndarray:
    """Return the noise of a difference of two values of each layer, as its node measured it.

    1.96 standard errors of a difference, from ``<variable>_stderr``; NaN where the node measured
    none of this variable.
    """
    name = f"{variable}_stderr"
    if name not in node:
        return np.full(len(layers), np.nan)
    error = chosen(
        node[name], {k: v for k, v in select.items() if k in node[name].dims}
    )
    squares = error**2
    floor = (
        Z * (2 * (squares.mean("step") if "step" in squares.dims else squares)) ** 0.5
    )
    if "layer" not in floor.dims:
        return np.full(len(layers), float(floor))
    return np.asarray(floor.reindex(layer=list(layers)).values, dtype=float)


def short(step: float) -> str:
    """Return a step as people write it.

    Examples
    --------
    >>> short(12000.0), short(3.5)
    ('12,000', '3.5')
    """
    return f"{step:,.0f}" if step >= 10 or float(step).is_integer() else f"{step:.1f}"


def check_labels(name: str, values: Mapping[str, Any]) -> None:
    """Check a table of one label for each of some dimensions.

    Raises
    ------
    ArgumentError
        If a label is neither text nor a number.

    Examples
    --------
    >>> check_labels("select", {"distance": "procrustes", "head": 3})
    """
    for dim, label in values.items():
        number = isinstance(label, int | float) and math.isfinite(label)
        if not number and not (isinstance(label, str) and label):
            raise ArgumentError(
                f"{name}[{dim!r}] must be text or a number; got {label!r}."
            )
