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
from ..scratch import let_go
from .layer_stack import layer_stack


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
            pieces.append(_idle(dataset(function(path, value), f" in {path}")))
            status.append("done")
        except (
            ValueError,
            ArithmeticError,
            np.linalg.LinAlgError,
            RuntimeError,
        ) as error:
            pieces.append(xr.Dataset())
            status.append(f"failed: {reason(error)}")
    stacked = layer_stack([*values], pieces)
    return stacked.assign(status=("layer", np.array(status, dtype=object)))


def _idle(piece: xr.Dataset) -> xr.Dataset:
    """Take the numbers of a layer that lie in files out of memory, until they are stacked."""
    for variable in piece.variables.values():
        let_go(variable.values)
    return piece


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
