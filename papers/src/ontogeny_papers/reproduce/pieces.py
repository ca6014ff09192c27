"""What a recipe has measured, piece by piece, in a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import xarray as xr

from ontogeny.errors import StoreError
from ontogeny.store import Cell, difference, read_cell, write_cell
from ontogeny.trees import Nodes
from ontogeny.whole_files import sweep


@dataclass(frozen=True)
class Pieces:
    """Measured pieces in a folder, each checked against what it was measured from.

    Parameters
    ----------
    folder
        Where they lie; without one nothing is kept.
    fingerprint
        What all of them depend on: recipe, size, text.
    note
        Called with a message where a piece is there, but of something else.

    Examples
    --------
    >>> import tempfile
    >>> pieces = Pieces(Path(tempfile.mkdtemp()), {"size": 3})
    >>> float(pieces.piece("square", lambda: xr.Dataset({"x": 9.0})).x)
    9.0
    >>> float(pieces.piece("square", lambda: 1 / 0).x)
    9.0
    """

    folder: Path | None = None
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    note: Callable[[str], None] = lambda message: None

    def __post_init__(self) -> None:
        if self.folder is not None:
            sweep(self.folder)

    def piece(self, name: str, measure: Callable[[], xr.Dataset]) -> xr.Dataset:
        """Return the piece `name`: as it was left, else measured and written whole."""
        if self.folder is None:
            return measure()
        path = self.folder / f"{name}.safetensors"
        data = self._read(name, path)
        if data is None:
            write_cell(path, Cell(measure(), fingerprint=self.fingerprint))
            # So that a run in one go and a continued one draw the same.
            data = read_cell(path)
        return data.data.copy(deep=True)

    def piece_nodes(
        self, name: str, measure: Callable[[], Nodes]
    ) -> dict[str, xr.Dataset]:
        """Return several datasets that are measured together, by their names."""
        measured = cache(measure)  # once, and only if one of them is missing
        names = self.piece(name, lambda: xr.Dataset(attrs={"nodes": list(measured())}))
        return {
            node: self.piece(
                f"{name}-{node}", partial(lambda node: measured()[node], node)
            )
            for node in names.attrs["nodes"]
        }

    def _read(self, name: str, path: Path) -> Cell | None:
        if not path.is_file():
            return None
        try:
            cell = read_cell(path)
        except StoreError as error:
            self.note(f"{name} is measured again: {error}")
            return None
        changed = difference(cell.fingerprint, self.fingerprint)
        if changed:
            self.note(f"{name} is measured again: {'; '.join(changed)}")
        return None if changed else cell
