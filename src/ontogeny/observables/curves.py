"""Observables of the curves that other observables found: one series a layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from ..errors import ArgumentError
from ..needs import Need, Series
from .base import Observable, SeriesReading
from .rows import MEASURABLE, reference_index

__all__ = ["OfCurve", "chosen", "curve_reference", "floor_of", "short"]


@dataclass(frozen=True)
class OfCurve(Observable):
    """An observable of one variable of another node, layer by layer.

    Parameters
    ----------
    of
        Name of the other node: one of activations, layer by layer, or one with a single curve of
        the whole model, such as the loss (its layer is then called ``"model"``).
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
    label: str | None = None

    def __post_init__(self) -> None:
        if self.first is not None and self.last is not None and self.first >= self.last:
            raise ArgumentError(f"first must be before last; got {self.first} and {self.last}.")
        if not isinstance(self.select, Mapping):
            raise ArgumentError(f"select must map dimensions to labels; got {self.select!r}.")

    @property
    def name(self) -> str:
        """The label, or the other node's name with this kind behind it."""
        return self.label or f"{self.of}-{self.kind}"

    @property
    def depends_on(self) -> tuple[str, ...]:  # type: ignore[override]
        """The other node, for its noise floor."""
        return (self.of,)

    def needs(self) -> Sequence[Need]:
        """Return the other node's variable at all steps."""
        return [Series(self.of, (self.variable,))]

    def observe(self, reading: SeriesReading, state: xr.Dataset | None) -> xr.Dataset:
        """Return the layer's ``curve(step)``."""
        values = chosen(reading.data[self.variable], self.select)
        if values.dims != ("step",):
            raise ArgumentError(
                f"{self.variable!r} of {self.of!r} must have the dimension step and none but it "
                f"after select; it has {values.dims}."
            )
        return xr.Dataset({"curve": values.reset_coords(drop=True).astype(np.float64)})

    def labels(self, data: xr.Dataset) -> list[str]:
        """Return the layers' module paths."""
        return [str(layer) for layer in data.layer.values]

    def tabulated(self, data: xr.Dataset) -> np.ndarray:
        """Return the curves (steps, layers), NaN outside the chosen steps."""
        curves = np.array(data.curve.transpose("step", "layer").values, dtype=np.float64)
        steps = data.step.values
        low = steps[0] if self.first is None else self.first
        high = steps[-1] if self.last is None else self.last
        curves[(steps < low) | (steps > high)] = np.nan
        return curves


_PREFERRED = {"distance": "procrustes", "alignment": "rotation removed"}


def chosen(values: xr.DataArray, select: Mapping[str, Any]) -> xr.DataArray:
    """Return `values` at one label of each dimension but ``step`` and ``layer``.

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
        if name not in values.dims:
            raise ArgumentError(f"select names {name!r}; {values.name!r} has {values.dims}.")
    for dim in [str(d) for d in values.dims if d not in ("step", "layer")]:
        labels = list(values[dim].values)
        wanted = select.get(dim, _PREFERRED.get(dim, labels[0]))
        if wanted not in labels:
            if dim in select:
                raise ArgumentError(f"select[{dim!r}] must be one of {labels}; got {wanted!r}.")
            wanted = labels[0]
        values = values.isel({dim: labels.index(wanted)}, drop=True)
    return values


def curve_reference(data: xr.Dataset, curves: np.ndarray) -> int | None:
    """Return the position of the reference step where the curves (steps, layers) are 0 there.

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


# Nodes hold one noise, of their main variable; of other variables it says nothing.
_NOISE_OF = {"floor": "relative_distance", "stderr": "rotation_removed"}


def floor_of(
    node: xr.Dataset, variable: str, select: Mapping[str, Any], layers: Sequence[str]
) -> np.ndarray:
    """Return the noise of a difference of two values of each layer, as its node measured it.

    Refitting and resampling (``floor``), else 1.96 standard errors of a difference from resampling
    tokens or texts (``stderr``, ``<variable>_stderr``); NaN where the node measured none.
    """
    name = _noise_name(node, variable)
    if name is None:
        return np.full(len(layers), np.nan)
    found = chosen(node[name], {k: v for k, v in select.items() if k in node[name].dims})
    if name != "floor":
        found = 1.96 * (2 * (found**2).mean("step")) ** 0.5
    if "layer" not in found.dims:
        return np.full(len(layers), float(found))
    return np.asarray(found.reindex(layer=list(layers)).values, dtype=np.float64)


def _noise_name(node: xr.Dataset, variable: str) -> str | None:
    """Return the variable with the noise of another one, or None."""
    if f"{variable}_stderr" in node:
        return f"{variable}_stderr"
    main = {**_NOISE_OF, "stderr": "loss"} if "loss" in node else _NOISE_OF
    return next((name for name, of in main.items() if of == variable and name in node), None)


def short(step: float) -> str:
    """Return a step as people write it.

    Examples
    --------
    >>> short(12000.0), short(3.5)
    ('12,000', '3.5')
    """
    return f"{step:,.0f}" if step >= 10 or float(step).is_integer() else f"{step:.1f}"
