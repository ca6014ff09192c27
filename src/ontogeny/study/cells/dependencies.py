"""The cells that a cell reads, exactly as its fingerprint names them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from ...errors import StoreError
from ...store import Cell

Header: TypeAlias = tuple[str, str]
"""Checksum and status of a cell."""

REPLACED = "replaced"
"""Stands for the checksum of a cell that is of other settings than those of this run."""


class Dependencies:
    """Cells of a folder as they were when the fingerprint of what reads them was completed.

    Another run may replace a cell at any moment. What is read here is what the fingerprint says,
    or nothing: so no cell ever holds numbers of settings that its fingerprint does not name.

    Parameters
    ----------
    folder
        The study's folder.
    places
        Where the cells lie in it.
    header
        Gives checksum and status of a cell.
    read
        Reads a cell and checks it.
    """

    def __init__(
        self,
        folder: Path,
        places: Iterable[Path],
        header: Callable[[Path], Header],
        read: Callable[[Path], Cell],
    ) -> None:
        self._folder, self._read = folder, read
        self._headers = {place: header(place) for place in places}

    def header(self, place: Path) -> Header:
        """Return checksum and status of a cell."""
        return self._headers[place]

    def read(self, place: Path) -> Cell:
        """Return a cell, memory-mapped.

        Raises
        ------
        StoreError
            If it is damaged, is gone, or another one has taken its place.
        """
        cell = self._read(self._folder / place)
        if cell.checksum != self._headers[place][0]:
            raise StoreError(
                f"{self._folder / place} was replaced by another run while it was used; run again."
            )
        return cell
