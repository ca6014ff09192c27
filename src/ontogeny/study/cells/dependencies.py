"""The cells that a cell reads, as its fingerprint names them, and what many compute alike once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from ...errors import StoreError
from ...store import Cell
from .cache import read_verified

# Checksum and status of a cell.
Header: TypeAlias = tuple[str, str]

# Stands for the checksum of a cell that is of other settings than those of this run.
REPLACED = "replaced"


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
    """

    def __init__(
        self, folder: Path, places: Iterable[Path], header: Callable[[Path], Header]
    ) -> None:
        self._folder = folder
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
        cell = read_verified(self._folder / place)
        if cell.checksum != self._headers[place][0]:
            raise StoreError(
                f"{self._folder / place} was replaced by another run while it was used; run again."
            )
        return cell


SHARED_BYTES = 1 << 30


class Shared:
    """Values by key, within a number of bytes.

    What was kept first stays. Observables ask for one layer after the other, so a new value in
    the place of the oldest would leave none for the next observable.

    Parameters
    ----------
    limit
        Bytes that may be kept. What does not fit is computed again when it is asked for.

    Examples
    --------
    >>> import numpy as np
    >>> shared = Shared(limit=80)
    >>> shared.get("a", lambda: np.ones(10)) is shared.get("a", lambda: np.zeros(10))
    True
    >>> shared.get("b", lambda: np.ones(1)) is shared.get("b", lambda: np.ones(1))
    False
    """

    def __init__(self, limit: int = SHARED_BYTES) -> None:
        self._limit = limit
        self._values: dict[Hashable, Any] = {}
        self._bytes = 0

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the value of a key; `make` computes it, an array or what else has ``nbytes``."""
        if key in self._values:
            return self._values[key]
        value = make()
        if self._bytes + value.nbytes <= self._limit:
            self._values[key] = value
            self._bytes += value.nbytes
        return value
