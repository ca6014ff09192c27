"""A merged result that stays open: it never mixes with the result of a later run.

Zarr opens chunks by path when their values are used. After a run has merged into the folder again,
the same path is that of another result, or of nothing, which Zarr reads as fill values: NaN.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr
from zarr.storage import LocalStore

from ...errors import StoreError
from ..folder.layout import result_path
from .checksums import check_files, check_unchanged, identity
from .foreign import check_chunk, check_metadata

_TRIES = 50


def open_tree(folder: Path) -> xr.DataTree:
    """Return the merged result in the folder of a study, read lazily.

    Raises
    ------
    StoreError
        If a file of the result is missing, truncated or changed.
    """
    path = result_path(folder)
    while True:
        wait_for_result(folder)
        opened = identity(path)
        try:
            store = OpenResult(path)
            store.arrays = check_metadata(path)
            tree = xr.open_datatree(store, engine="zarr")
            store.check()
            tree.encoding["source"] = str(path)  # as xarray notes it
            return tree
        except StoreError:
            if identity(path) == opened:
                raise  # else a run has just merged, and that result is opened instead


def wait_for_result(folder: Path) -> None:
    """Wait while a run may be between its two renames: for a moment there is no result."""
    path = result_path(folder)
    for _ in range(_TRIES):
        if path.is_dir() or not any(folder.glob(f".{path.name}.*.tmp")):
            return
        time.sleep(0.01)


class OpenResult(LocalStore):
    """The files of one merged result; reading raises once another has taken its place.

    Files that are missing or cut short, and changed metadata, are found when it is opened; the
    content of a chunk is checked when it is read for the first time.

    Examples
    --------
    >>> import tempfile
    >>> from .checksums import write_checksums
    >>> path = Path(tempfile.mkdtemp())
    >>> write_checksums(path)
    >>> OpenResult(path).check()
    """

    def __init__(self, root: Path | str, *, read_only: bool = True) -> None:
        super().__init__(root, read_only=read_only)
        self.identity = identity(Path(root))
        self._unchecked = dict(check_files(Path(root), chunks=False))
        self.arrays: Mapping[str, Any] = {}

    async def get(self, key: str, *args: Any, **options: Any) -> Any:
        """Return what is stored under a key, or None."""
        value = await super().get(key, *args, **options)
        self._check_read(key)
        return value

    def get_sync(self, key: str, *args: Any, **options: Any) -> Any:
        """Return what is stored under a key, or None: the same without waiting in between."""
        value = super().get_sync(key, *args, **options)
        self._check_read(key)
        return value

    def _check_read(self, key: str) -> None:
        self.check()  # afterwards: what was there until now was there while it was read
        if key not in self._unchecked:
            return
        try:
            check_unchanged(Path(self.root), key, self._unchecked[key])
            array = self.arrays.get(key.rpartition("/")[0])
            if array is not None and not key.rpartition("/")[2].startswith("."):
                check_chunk(key, (Path(self.root) / key).read_bytes(), array)
        except (OSError, StoreError):
            self.check()  # a run that merges meanwhile is no damage
            raise
        self._unchecked.pop(key, None)

    def check(self) -> None:
        """Check that the result is still the one that was opened.

        Raises
        ------
        StoreError
            If a run has merged another one meanwhile, or the folder is gone.
        """
        if self.identity is None or identity(Path(self.root)) != self.identity:
            raise StoreError(
                f"{self.root} is no longer the result that was opened: a run has merged into its "
                "folder, or it was deleted. Open it again, or load() it before."
            )
