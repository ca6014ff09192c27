"""Names that a person gave to concepts, in ``names.toml`` beside the study.

The file is read with `tomllib` and written by appending: comments stay, and of several entries for
one concept the last one holds. An entry holds for one fit only: the same number of another fit is
another concept.
"""

from __future__ import annotations

import json
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from ..errors import ArgumentError, StoreError, suggestion
from ..report.choosing import step_position
from ..store import write_whole

FILE = "names.toml"
_KEYS = {"node": str, "layer": str, "concept": int, "fit": str, "name": str}
_LONGEST = 80
_HEAD = """\
# Names that people gave to concepts. Of several entries for one concept the last one holds;
# an empty name takes it back. "fit" says of which fit of the concepts an entry is.
"""


@dataclass(frozen=True)
class Labels:
    """The names that people gave: ``{(node, layer, concept, fit): name}``."""

    names: Mapping[tuple[str, str, int, str], str]

    def of(self, node: str, layer: str, concept: int, fit: str) -> str:
        """Return the name of a concept, empty where it has none."""
        return self.names.get((node, layer, concept, fit), "")

    def of_other_fits(self, node: str, layer: str, concept: int, fit: str) -> list[str]:
        """Return names that the same number has in other fits."""
        wanted = (node, layer, concept)
        return [n for key, n in self.names.items() if key[:3] == wanted and key[3] != fit and n]


def names_path(folder: str | Path) -> Path:
    """Return the file of names of a study's folder."""
    return Path(folder) / FILE


def read_labels(folder: str | Path) -> Labels:
    """Return the names that people gave to the concepts of a study.

    Parameters
    ----------
    folder
        The study's folder; without ``names.toml`` in it there are no names.

    Raises
    ------
    StoreError
        If the file cannot be read, or an entry is not what it must be.

    Examples
    --------
    >>> import tempfile
    >>> read_labels(tempfile.mkdtemp()).names
    {}
    """
    path = names_path(folder)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Labels({})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    entries = content.pop("name", [])
    if content or not isinstance(entries, list):
        other = next(iter(content), "name")
        raise StoreError(f"{path} must hold [[name]] tables and nothing else; got {other!r}.")
    return Labels(dict(_entry(path, i, entry) for i, entry in enumerate(entries)))


def _entry(path: Path, number: int, entry: Any) -> tuple[tuple[str, str, int, str], str]:
    where = f"[[name]] {number + 1} of {path}"
    for key in entry:
        if key not in _KEYS:
            raise StoreError(
                f"{where} has no key {key!r}; it has {', '.join(_KEYS)}.{suggestion(key, _KEYS)}"
            )
    for key, kind in _KEYS.items():
        if type(entry.get(key)) is not kind:
            kinds = {str: "a text", int: "a whole number"}
            raise StoreError(f"{where}: {key} must be {kinds[kind]}; got {entry.get(key)!r}.")
    return (entry["node"], entry["layer"], entry["concept"], entry["fit"]), entry["name"].strip()


def add_label(folder: str | Path, key: tuple[str, str, int, str], name: str) -> Path:
    """Give the concept of a key ``(node, layer, concept, fit)`` a name; return the file.

    Raises
    ------
    ArgumentError
        If `name` is not a text of at most 80 characters in one line.
    StoreError
        If the names of the folder cannot be read.
    """
    chosen, path = _checked(name), names_path(folder)
    read_labels(folder)  # refuses a file that another entry would not mend
    _append(path, {**dict(zip(_KEYS, key, strict=False)), "name": chosen})
    return path


def fit_of(data: xr.Dataset, layer: str, step: int = -1) -> str:
    """Return which fit the concepts of a layer are of; empty where the node does not say."""
    if "fit_id" not in data:
        return ""
    found = data.fit_id.sel(layer=layer)
    if "step" in found.dims:
        found = found.isel(step=step_position(data.step.values.tolist(), step))
    return str(found.item())


def _checked(name: object) -> str:
    text = name.strip() if isinstance(name, str) else None
    hidden = text is not None and any(unicodedata.category(c) in ("Cc", "Cs") for c in text)
    if text is None or hidden or len(text) > _LONGEST:
        raise ArgumentError(
            f"name must be a text of at most {_LONGEST} characters in one line; got {name!r}."
        )
    return text


def _append(path: Path, entry: Mapping[str, Any]) -> None:
    before = path.read_text(encoding="utf-8") if path.exists() else _HEAD
    # JSON's strings are TOML's, but for one control character that a name cannot hold.
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()]
    text = "\n".join([before.rstrip("\n"), "", "[[name]]", *lines, ""])
    write_whole(path, text.encode())
