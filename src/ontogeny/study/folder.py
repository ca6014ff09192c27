"""A finished or half-finished study on disk."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import xarray as xr

from ..errors import StoreError
from .layout import result_path, settings_path
from .seal import check_seal, identity

__all__ = ["StudyFolder", "open_study"]

_LOOKS = 50


@dataclass(frozen=True)
class StudyFolder:
    """The folder of a study: its result and its page."""

    folder: Path

    @cached_property
    def result(self) -> xr.DataTree:
        """The merged result, read lazily; ``xarray.open_datatree(folder / "result.zarr")``.

        Its files are checked first: xarray alone reads a missing chunk as NaN. A run that merges
        something else into the folder replaces them: what is read after that raises a StoreError.
        Open the result again then, or ``load()`` it beforehand.

        Raises
        ------
        StoreError
            If a file of the result is missing, truncated or changed.
        """
        from .opened import OpenResult

        path = result_path(self.folder)
        while True:
            _settle(self.folder)
            store = OpenResult(path)
            try:
                check_seal(path)
                tree = xr.open_datatree(store, engine="zarr")
                store.check()
                return tree
            except StoreError:
                if identity(path) == store.identity:
                    raise  # else a run has just merged: that result is looked at instead

    def report(self, path: str | Path) -> Path:
        """Write the page, one HTML file that opens without a network, and return its path."""
        from .. import report

        return report.write(self.result, Path(path))


def open_study(folder: str | Path) -> StudyFolder:
    """Open the result of a study.

    Raises
    ------
    StoreError
        If `folder` is no study, or has no merged result yet.
    """
    place = Path(folder)
    if not settings_path(place).exists():
        raise StoreError(f"{place} is no study folder (it has no {settings_path(place).name}).")
    _settle(place)
    if not result_path(place).is_dir():
        raise StoreError(f"{place} has no merged result yet; run the study again to finish it.")
    return StudyFolder(place)


def _settle(folder: Path) -> None:
    """Wait while a run may be between its two renames: for a moment there is no result."""
    path = result_path(folder)
    for _ in range(_LOOKS):
        if path.is_dir() or not any(folder.glob(f".{path.name}.*.tmp")):
            return
        time.sleep(0.01)
