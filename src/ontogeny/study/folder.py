"""A finished or half-finished study on disk."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import xarray as xr

from ..errors import StoreError
from .checksums import identity
from .layout import comparison_path, result_path, settings_path

_TRIES = 50


@dataclass(frozen=True)
class StudyFolder:
    """The folder of a study: its result and its page."""

    folder: Path

    @cached_property
    def result(self) -> xr.DataTree:
        """The merged result, read lazily; ``xarray.open_datatree(folder / "result.zarr")``.

        xarray alone reads a missing or damaged chunk as NaN or as data; here it is a StoreError,
        when the result is opened or when the chunk is read. A run that merges something else into
        the folder replaces the files: what is read after that raises a StoreError. Open the
        result again then, or ``load()`` it beforehand.

        Raises
        ------
        StoreError
            If a file of the result is missing, truncated or changed.
        """
        from .opened import OpenResult  # which imports Zarr

        path = result_path(self.folder)
        while True:
            _wait_for_result(self.folder)
            opened = identity(path)
            try:
                store = OpenResult(path)
                tree = xr.open_datatree(store, engine="zarr")
                store.check()
                tree.encoding["source"] = str(path)  # as xarray notes it
                return tree
            except StoreError:
                if identity(path) == opened:
                    raise  # else a run has just merged, and that result is opened instead

    def report(self, path: str | Path) -> Path:
        """Write the page, one HTML file that opens without a network, and return its path.

        Concepts bear the names that people gave them (``result.concept.label``).
        """
        from .. import atlas, report

        return report.write(atlas.with_labels(self.result), Path(path))


def open_study(folder: str | Path) -> StudyFolder:
    """Open the result of a study, or a comparison that was written.

    Raises
    ------
    StoreError
        If `folder` is no study, or has no merged result yet.
    """
    folder = Path(folder)
    settings = settings_path(folder)
    if not settings.exists() and not comparison_path(folder).exists():
        raise StoreError(f"{folder} is no study folder (it has no {settings.name}).")
    _wait_for_result(folder)
    if not result_path(folder).is_dir():
        raise StoreError(f"{folder} has no merged result yet; run the study again to finish it.")
    return StudyFolder(folder)


def _wait_for_result(folder: Path) -> None:
    """Wait while a run may be between its two renames: for a moment there is no result."""
    path = result_path(folder)
    for _ in range(_TRIES):
        if path.is_dir() or not any(folder.glob(f".{path.name}.*.tmp")):
            return
        time.sleep(0.01)
