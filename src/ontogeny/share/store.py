"""Changes to a copy of a merged result, file by file: what is not changed stays bit for bit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..study.results.checksums import LIST, write_checksums


def change_attributes(
    store: Path,
    node: str,
    change: Mapping[str, Any] | Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    """Change the attributes of a node, ``""`` for the root: by new ones, or a function of all."""
    path = store / node / ".zattrs"
    before = json.loads(path.read_bytes()) if path.exists() else {}
    after = change(before) if callable(change) else before | dict(change)
    if after != before:
        path.write_text(json.dumps(after, indent=2), encoding="utf-8")


def change_texts(store: Path, variable: str, change: Callable[[str], str]) -> None:
    """Change the texts of a variable, named by its path in the store."""
    import zarr

    array = zarr.open_array(store / variable, mode="r+")
    before = [str(text) for text in np.asarray(array[...]).ravel().tolist()]
    after = [change(text) for text in before]
    if after != before:
        # One of fixed length holds no longer text than the longest before; none gets longer.
        texts = np.array(after, dtype=np.asarray(array[...]).dtype)
        array[...] = texts.reshape(array.shape)


def in_strings(value: Any, change: Callable[[str], str]) -> Any:
    """Return data with all its texts changed, also those in a text that is JSON."""
    if isinstance(value, Mapping):
        return {k: in_strings(v, change) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [in_strings(v, change) for v in value]
    if not isinstance(value, str):
        return value
    if value[:1] in ("{", "["):
        try:
            return json.dumps(in_strings(json.loads(value), change))
        except ValueError:
            pass
    return change(value)


def strings(value: Any) -> Iterator[str]:
    """Yield the texts in plain data.

    Examples
    --------
    >>> list(strings({"a": ["b", 1], "c": {"d": "e"}}))
    ['b', 'e']
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from strings(item)


def seal(store: Path) -> None:
    """Write the metadata of the whole store and the checksums again."""
    import zarr

    (store / LIST).unlink(missing_ok=True)  # which Zarr does not know
    zarr.consolidate_metadata(store, zarr_format=2)
    write_checksums(store)
