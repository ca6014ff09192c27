"""Names that a person gave to concepts, in ``names.toml`` beside the study.

The file is read with `tomllib` and written by appending: comments stay, and of several entries for
one concept the last one holds. An entry holds for the fit that it names, and for the concept of
another fit that has its codes: the same number of another fit is another concept.
"""

from __future__ import annotations

import json
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ..errors import ArgumentError, StoreError, suggestion
from ..report.choosing import step_position
from ..whole_files import write_whole

FILE = "names.toml"
_KEYS = {"node": str, "layer": str, "concept": int, "fit": str, "name": str}
_CODE = "code"
KEPT = 64  # numbers of a sketch that stand beside a name
SAME = 0.9  # correlation of codes, as far as sketches tell it, from which on a name follows them
_LONGEST = 80
_HEAD = """\
# Names that people gave to concepts. Of several entries for one concept the last one holds;
# an empty name takes it back. "fit" says of which fit of the concepts an entry is, and "code" by
# which numbers the concept is known again in another one.
"""


@dataclass(frozen=True)
class Labels:
    """The names that people gave: ``{(node, layer, concept, fit): name}``."""

    names: Mapping[tuple[str, str, int, str], str]
    codes: Mapping[tuple[str, str, int, str], Sequence[int]] = field(
        default_factory=dict
    )

    def given(
        self, node: str, layer: str, fit: str, sketches: np.ndarray | None
    ) -> dict[int, str]:
        """Return the names of the concepts of a fit by their numbers.

        Names of other fits go to the concept whose code is nearest to that which was named, where
        it is the same but for noise; `sketches` (r, s) are those of this fit.
        """
        sketches = None if sketches is None else _kept(sketches)
        numbers = {
            key[2]: name
            for key, name in self.names.items()
            if key[:2] == (node, layer) and key[3] == fit
        }
        for key, code in self.codes.items():
            name = self.names.get(key, "")
            if (
                key[:2] != (node, layer)
                or key[3] == fit
                or not name
                or sketches is None
            ):
                continue
            code_array = np.asarray(code, dtype=np.float64)
            if code_array.shape != sketches.shape[1:] or not code_array.any():
                continue
            cosine = np.nan_to_num(sketches @ code_array / np.linalg.norm(code_array))
            nearest = int(cosine.argmax())
            if cosine[nearest] >= SAME:
                numbers.setdefault(nearest, name)
        return {number: name for number, name in numbers.items() if name}

    def of_other_fits(self, node: str, layer: str, concept: int, fit: str) -> list[str]:
        """Return names that the same number has in other fits."""
        place = (node, layer, concept)
        return [
            n
            for key, n in self.names.items()
            if key[:3] == place and key[3] != fit and n
        ]


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
        raise StoreError(
            f"{path} must hold [[name]] tables and nothing else; got {other!r}."
        )
    codes = [entry.pop(_CODE, None) for entry in entries]
    labels = [_entry(path, i, entry) for i, entry in enumerate(entries)]
    sketches = {
        key: _checked_code(path, i, code)
        for i, ((key, _), code) in enumerate(zip(labels, codes, strict=True))
        if code is not None
    }
    return Labels(dict(labels), sketches)


def _checked_code(path: Path, number: int, code: Any) -> list[int]:
    if not isinstance(code, list) or any(type(part) is not int for part in code):
        raise StoreError(
            f"[[name]] {number + 1} of {path}: code must be a list of whole numbers; got {code!r}."
        )
    return code


def _entry(
    path: Path, number: int, entry: Any
) -> tuple[tuple[str, str, int, str], str]:
    where = f"[[name]] {number + 1} of {path}"
    for key in entry:
        if key not in _KEYS:
            raise StoreError(
                f"{where} has no key {key!r}; it has {', '.join(_KEYS)}.{suggestion(key, _KEYS)}"
            )
    for key, kind in _KEYS.items():
        if type(entry.get(key)) is not kind:
            kinds = {str: "a text", int: "a whole number"}
            raise StoreError(
                f"{where}: {key} must be {kinds[kind]}; got {entry.get(key)!r}."
            )
    return (entry["node"], entry["layer"], entry["concept"], entry["fit"]), entry[
        "name"
    ].strip()


def add_label(
    folder: str | Path,
    key: tuple[str, str, int, str],
    name: str,
    sketch: np.ndarray | None = None,
) -> Path:
    """Give the concept of a key ``(node, layer, concept, fit)`` a name; return the file.

    By its `sketch` (s,) the name finds the concept in another fit.

    Raises
    ------
    ArgumentError
        If `name` is not a text of at most 80 characters in one line.
    StoreError
        If the names of the folder cannot be read.
    """
    text = _checked(name)
    path = names_path(folder)
    read_labels(folder)  # refuses a file that another entry would not mend
    code = (
        {}
        if sketch is None
        else {_CODE: np.round(1000 * np.nan_to_num(_kept(sketch))).astype(int).tolist()}
    )
    _append(path, {**dict(zip(_KEYS, key, strict=False)), "name": text, **code})
    return path


def fit_of(data: xr.Dataset, layer: str, step: int) -> str:
    """Return which fit the concepts of a layer are of; empty where the node does not say."""
    if "fit_id" not in data:
        return ""
    ids = data.fit_id.sel(layer=layer)
    if "step" in ids.dims:
        ids = ids.isel(step=step_position(data.step.values.tolist(), step))
    return str(ids.item())


def sketches_of(data: xr.Dataset, layer: str, step: int = -1) -> np.ndarray | None:
    """Return (r, s) by which the concepts of a layer are known again; None of older results."""
    if "code_sketch" not in data:
        return None
    sketches = data["code_sketch"].sel(layer=layer)
    if "step" in sketches.dims:
        sketches = sketches.isel(step=step_position(data.step.values.tolist(), step))
    return np.asarray(sketches.transpose("concept", "sketch").values, dtype=np.float64)


def _kept(sketches: np.ndarray) -> np.ndarray:
    """Return the first numbers of sketches (..., s), again of length 1."""
    some = sketches[..., :KEPT]
    length = np.linalg.norm(some, axis=-1, keepdims=True)
    return np.asarray(some / np.where(length > 0, length, 1.0))


def _checked(name: object) -> str:
    text = name.strip() if isinstance(name, str) else None
    hidden = text is not None and any(
        unicodedata.category(c) in ("Cc", "Cs") for c in text
    )
    if text is None or hidden or len(text) > _LONGEST:
        raise ArgumentError(
            f"name must be a text of at most {_LONGEST} characters in one line; got {name!r}."
        )
    return text


def _append(path: Path, entry: Mapping[str, Any]) -> None:
    before = path.read_text(encoding="utf-8") if path.exists() else _HEAD
    # JSON's strings are TOML's, but for one control character that a name cannot hold.
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in entry.items()
    ]
    text = "\n".join([before.rstrip("\n"), "", "[[name]]", *lines, ""])
    write_whole(path, text.encode())
