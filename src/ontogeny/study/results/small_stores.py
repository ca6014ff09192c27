"""The files of nodes whose variables are small and plain, in a Zarr store of format 2.

xarray and Zarr take a millisecond and more for each variable, whatever its size: a result of thirty
kinds has a thousand of them, most of a few numbers. The files are theirs to the byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr
from numcodecs import Blosc, VLenUTF8

from ...trees import Nodes

# Bytes: Zarr keeps a shorter array in one piece.
SHORT = 2**17
# Attributes by which xarray says how a variable is stored.
_OF_STORES = {"_ARRAY_DIMENSIONS", "_FillValue", "_Unsigned", "add_offset", "calendar"}
_OF_STORES |= {"coordinates", "dtype", "missing_value", "scale_factor"}
_CODEC = Blosc("lz4", clevel=5, shuffle=Blosc.SHUFFLE)


def is_small(node: xr.Dataset, short: int = SHORT) -> bool:
    """Return whether all variables are short numbers, truths or texts, as nearly all are."""
    return all(
        variable.nbytes < short and _is_plain(str(name), variable)
        for name, variable in node.variables.items()
    )


def _is_plain(name: str, variable: xr.Variable) -> bool:
    if _OF_STORES & {*variable.attrs}:
        return False
    if "/" in name or " " in name or name.startswith("."):
        return False
    if variable.dtype == object:
        texts = variable.values.ravel().tolist()
        return bool(texts) and all(type(text) is str for text in texts)
    return variable.dtype.kind in "biufU" and variable.dtype.isnative


def files_of(nodes: Nodes) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each file, without the metadata of all together.

    Parameters
    ----------
    nodes
        By their paths, each of them small as `is_small` says.

    Examples
    --------
    >>> sorted(name for name, _ in files_of({"/loss": xr.Dataset({"loss": 4.2})}))
    ['loss/.zattrs', 'loss/.zgroup', 'loss/loss/.zarray', 'loss/loss/.zattrs', 'loss/loss/0']
    """
    for path, node in nodes.items():
        place = "" if path == "/" else f"{path.strip('/')}/"
        beside, rest = _coordinates(node)
        yield f"{place}.zgroup", _text({"zarr_format": 2})
        yield f"{place}.zattrs", _text(_attributes(node.attrs, rest))
        for name, variable in node.variables.items():
            for file, content in _of_array(variable, beside.get(str(name), [])):
                yield f"{place}{name}/{file}", content


def _of_array(variable: xr.Variable, beside: list[str]) -> Iterator[tuple[str, bytes]]:
    values = np.asarray(variable.values, order="C")
    is_text = values.dtype == object
    about = {
        "shape": [*values.shape],
        "chunks": [max(size, 1) for size in values.shape],
        "dtype": values.dtype.str,
        "fill_value": "NaN" if values.dtype.kind == "f" else None,
        "order": "C",
        "filters": [{"id": "vlen-utf8"}] if is_text else None,
        "dimension_separator": ".",
        "compressor": _CODEC.get_config(),
        "zarr_format": 2,
    }
    dims = {"_ARRAY_DIMENSIONS": list(map(str, variable.dims))}
    yield ".zarray", _text(about)
    yield ".zattrs", _text(_attributes(variable.attrs, beside) | dims)
    if not _is_filled(values):
        content = VLenUTF8().encode(values.ravel()) if is_text else values
        yield ".".join("0" * values.ndim) or "0", bytes(_CODEC.encode(content))


def _is_filled(values: np.ndarray) -> bool:
    """Return whether it holds nothing but what a reader puts where there is no file."""
    if values.dtype.kind == "f":
        return bool(np.isnan(values).all())
    return not values.astype(bool).any()


def _coordinates(node: xr.Dataset) -> tuple[dict[str, list[str]], list[str]]:
    """Return the coordinates that stand beside each variable, and those that stand beside none."""
    found: dict[str, list[str]] = {}
    rest = []
    for name in sorted(str(name) for name in {*node.coords} - {*node.dims}):
        dims = {*node[name].dims}
        users = [str(n) for n, v in node.data_vars.items() if dims <= {*v.dims}]
        for user in users:
            found.setdefault(user, []).append(name)
        if not users:
            rest.append(name)
    return found, rest


def _attributes(
    attributes: Mapping[Any, Any], coordinates: list[str]
) -> dict[str, Any]:
    found = {str(name): _plain(value) for name, value in attributes.items()}
    return found | ({"coordinates": " ".join(coordinates)} if coordinates else {})


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _text(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=2).encode()
