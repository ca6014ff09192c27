"""What is observed at a checkpoint, as the variables of a cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from ..arrays import is_torch_array, to_numpy
from ..errors import NonFiniteError
from ..own_code import reason
from ..quantities import expanded


def by_layer(
    values: Mapping[str, Any], function: Callable[[str, Any], Mapping[str, Any]]
) -> xr.Dataset:
    """Apply `function(path, value)` to every layer and stack the results along ``layer``.

    `function` returns `Measured`, numbers, ``(dims, array)`` pairs or DataArrays by name. A layer
    in which it raises a numerical or argument error gets NaN and the reason in ``status(layer)``;
    the others are kept. NaN or infinity in a result counts as such an error.

    Examples
    --------
    >>> result = by_layer({"a": 2.0, "b": 0.0}, lambda path, v: {"inverse": 1 / v})
    >>> result.inverse.values.tolist(), str(result.status.values[1])
    ([0.5, nan], 'failed: ZeroDivisionError: float division by zero')
    """
    pieces: list[xr.Dataset] = []
    status: list[str] = []
    for path, value in values.items():
        try:
            piece = dataset(function(path, value), f" in {path}")
            status.append("done")
        except (
            ValueError,
            ArithmeticError,
            np.linalg.LinAlgError,
            RuntimeError,
        ) as error:
            piece = xr.Dataset()
            status.append(f"failed: {reason(error)}")
        pieces.append(piece)
    labels = np.array(list(values), dtype=object)
    statuses = np.array(status, dtype=object)
    if pieces and all(_is_like(piece, pieces[0]) for piece in pieces):
        rows = {  # concat, which looks for what differs, took longer than most of what is observed
            name: (
                ("layer", *v.dims),
                np.stack([p[name].values for p in pieces]),
                v.attrs,
            )
            for name, v in pieces[0].data_vars.items()
        }
        coords = {"layer": labels, **pieces[0].coords}
        return xr.Dataset({**rows, "status": ("layer", statuses)}, coords)
    each = [
        piece.expand_dims(layer=[path])
        for path, piece in zip(values, pieces, strict=True)
    ]
    # "minimal": a layer that failed has no labels of the others' dimensions.
    stacked = xr.concat(
        each, dim="layer", join="outer", data_vars="all", coords="minimal"
    )
    return stacked.assign(status=("layer", statuses))


def _is_like(one: xr.Dataset, other: xr.Dataset) -> bool:
    """Return whether two pieces have the same variables of the same form, and equal labels."""
    forms = [
        {n: (v.dims, v.shape, v.dtype) for n, v in d.data_vars.items()}
        for d in (one, other)
    ]
    return forms[0] == forms[1] and one.coords.equals(other.coords)


def dataset(values: Mapping[str, Any], where: str = "") -> xr.Dataset:
    """Return measurements and plain values by name as the variables of a cell.

    Raises
    ------
    NonFiniteError
        If one is NaN or infinite.

    Examples
    --------
    >>> from ontogeny.quantities import Measured
    >>> sorted(dataset({"norm": Measured(2.0, stderr=0.1)}).data_vars)
    ['norm', 'norm_stderr']
    """
    variables = {}
    for name, value in expanded(values):
        if isinstance(value, xr.DataArray):
            array = value
        else:
            dims, numbers = value if isinstance(value, tuple) else ((), value)
            array = xr.DataArray(_numbers(numbers), dims=dims)
        if array.dtype.kind == "f" and not np.isfinite(array.values).all():
            raise NonFiniteError(f"{name} is not finite{where}")
        variables[name] = array
    return xr.Dataset(variables)


def _numbers(value: Any) -> np.ndarray:
    """Return numbers of the host, also of lists of tensors of a device."""
    several = isinstance(value, list | tuple) and any(map(is_torch_array, value))
    return np.array([*map(to_numpy, value)]) if several else to_numpy(value)
