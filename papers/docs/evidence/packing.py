"""Numbers that verdicts rest on: whole variables, draw by draw, in single precision."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

_LONGEST = 60  # characters of an attribute
_LARGEST = 2_000_000  # bytes of a file of numbers
_MANY = 1000  # values from which on shares are stored as whole numbers
_WHOLES = 4096  # of which such shares are


def smallest(
    judge: Callable[..., Sequence[Any]], numbers: list[Any]
) -> list[Any] | None:
    """Return the numbers, packed, without the variables and labels that no verdict reads."""
    wanted = [verdict.stored() for verdict in judge(*numbers)]

    def same(trial: list[Any]) -> bool:
        try:
            return [verdict.stored() for verdict in judge(*trial)] == wanted
        except Exception:  # a judge fails in its own way where what it reads is missing
            return False

    names = sorted({name for value in numbers for name in _names(value)})
    numbers = _without(numbers, [*names, "attrs"], same)
    text = json.dumps([packed(value) for value in numbers], separators=(",", ":"))
    return json.loads(text) if len(text) <= _LARGEST else None


def _without(
    numbers: list[Any], names: list[str], same: Callable[[list[Any]], bool]
) -> list[Any]:
    """Return numbers without those variables and nodes of some names that change no sentence."""
    trial = [_only(value, lambda name: name not in names) for value in numbers]
    if same(trial):
        return trial
    if len(names) == 1:
        return numbers
    middle = len(names) // 2
    return _without(_without(numbers, names[:middle], same), names[middle:], same)


def _names(value: Any, place: str = "") -> Iterator[str]:
    """Return the names of what can be left out: variables, labels and nodes, by their place."""
    if isinstance(value, xr.Dataset):
        yield from (f"{place} {name}" for name in value.variables)
        for dim, labels in _labels(value).items():
            yield from (f"{place} {dim} {label}" for label in labels)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield f"{place}/{key}"
            yield from _names(inner, f"{place}/{key}")
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _names(inner, place)


def _labels(data: xr.Dataset) -> dict[str, list[str]]:
    """Return the labels of dimensions that words name, such as distances and alignments."""
    return {
        str(d): i.values.tolist()
        for d, i in data.coords.items()
        if i.dims == (d,) and i.dtype.kind in "UOT" and len({*i.values}) == i.size
    }


def _only(value: Any, keep: Callable[[str], bool], place: str = "") -> Any:
    if isinstance(value, xr.Dataset):
        fewer = {}
        for d, labels in _labels(value).items():
            kept = [label for label in labels if keep(f"{place} {d} {label}")]
            if len(kept) < value.sizes[d]:
                fewer[d] = kept
        unread = [name for name in value.variables if not keep(f"{place} {name}")]
        read = value.drop_vars(unread)
        # Without its labels a dimension would be read by place.
        labels = {d: value.variables[d] for d in read.dims if d in value.coords}
        data = read.assign_coords(labels).sel(
            {d: x for d, x in fewer.items() if d in read.dims}
        )
        return data if keep("attrs") else data.drop_attrs()
    if isinstance(value, Mapping):
        places = {key: f"{place}/{key}" for key in value}
        return {
            key: _only(value[key], keep, at) for key, at in places.items() if keep(at)
        }
    return (
        [_only(x, keep, place) for x in value]
        if isinstance(value, list | tuple)
        else value
    )


def packed(value: Any) -> Any:
    """Return numbers as JSON takes them: whole ones as they are, others in single precision."""
    if isinstance(value, xr.Dataset):
        variables = {}
        for name, one in value.variables.items():
            described = _described(one.values)
            variables[str(name)] = [list(one.dims), *described, _short(one.attrs)]
        return {
            "variables": variables,
            "coords": list(map(str, value.coords)),
            "attrs": _short(value.attrs),
        }
    if isinstance(value, Mapping):
        return {str(key): packed(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [packed(inner) for inner in value]
    if isinstance(value, np.ndarray):
        return {"array": _single(value.tolist()), "dtype": value.dtype.str}
    return _single(value.item() if isinstance(value, np.generic) else value)


def _short(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """Return attributes without long ones, which describe figures and sections."""
    plain = {str(k): v for k, v in attrs.items() if isinstance(v, str | int | float)}
    return {key: value for key, value in plain.items() if len(str(value)) <= _LONGEST}


def _described(values: np.ndarray) -> tuple[str, Any]:
    """Return the type of values and these; texts of any length, as Zarr gives them, as others."""
    if values.dtype.kind == "T":
        values = values.astype(object).astype(str)
    return values.dtype.str, _values(values)


def _values(values: np.ndarray) -> Any:
    """Return values; of what is mostly NaN the others alone, with their places.

    Of many shares of one whole, as draws of a score are, the counts: a third of the bytes.
    """
    if values.dtype.kind != "f":
        return _single(values.tolist())
    if np.isnan(values).sum() <= values.size / 2:
        whole = _common_whole(values)
        if whole:
            counts = np.rint(values * whole).astype(int)
            return {"of": whole, "counts": counts.tolist()}
        return _single(values.tolist())
    at = np.flatnonzero(~np.isnan(values))
    gaps = np.diff(at, prepend=0).tolist()
    return {
        "shape": values.shape,
        "gaps": gaps,
        "values": _single(values.flat[at].tolist()),
    }


def _common_whole(values: np.ndarray) -> int:
    """Return the least whole that all of many values are shares of; 0 of others."""
    if values.size < _MANY or not np.isfinite(values).all():
        return 0
    some = np.unique(values)
    for whole in range(1, _WHOLES + 1):
        if np.allclose(some * whole, np.rint(some * whole), rtol=0, atol=1e-7):
            return whole
    return 0


def _whole(values: Any, dtype: str) -> np.ndarray:
    if not isinstance(values, dict):
        return np.array(values, dtype=dtype)
    if "of" in values:
        return np.asarray(np.array(values["counts"]) / values["of"], dtype=dtype)
    whole = np.full(values["shape"], np.nan, dtype=dtype)
    whole.flat[np.cumsum(values["gaps"], dtype=int)] = values["values"]
    return whole


def _single(value: Any) -> Any:
    if isinstance(value, list):
        return [_single(inner) for inner in value]
    if not isinstance(value, float):
        return value
    return float(str(np.float32(value))) if np.isfinite(value) else str(value)


def unpacked(value: Any) -> Any:
    """Return datasets, lists and dicts of what `packed` made."""
    if isinstance(value, dict) and "variables" in value:
        arrays = {
            name: xr.Variable(dims, _whole(values, dtype), attrs)
            for name, (dims, dtype, values, attrs) in value["variables"].items()
        }
        data = xr.Dataset(
            {name: one for name, one in arrays.items() if name not in value["coords"]},
            {name: arrays[name] for name in value["coords"]},
        )
        return data.assign_attrs(value["attrs"])
    if isinstance(value, dict) and "array" in value:
        return np.array(value["array"], dtype=value["dtype"])
    if isinstance(value, dict):
        return {key: unpacked(inner) for key, inner in value.items()}
    return [unpacked(inner) for inner in value] if isinstance(value, list) else value
