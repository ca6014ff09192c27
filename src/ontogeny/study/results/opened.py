"""A merged result that stays open: it never mixes with the result of a later run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import xarray as xr
from zarr.storage import LocalStore

from ...errors import StoreError
from ..folder.layout import result_path
from .checksums import check, check_data_only, is_listed, listed

_TRIES = 50


def open_tree(folder: Path) -> xr.DataTree:
    """Return the merged result in the folder of a study, read lazily.

    Raises
    ------
    StoreError
        If its metadata are missing or changed, or it holds more than numbers and texts.
    """
    path = result_path(folder)
    while True:
        wait_for_result(folder)
        store = OpenResult(path)
        try:
            check_data_only(path)
            # Consolidated alone: what lies beside the arrays was not checked for decoders.
            tree = xr.open_datatree(store, engine="zarr", zarr_format=2, consolidated=True)
        except StoreError:
            if is_listed(path, store.digests):
                raise  # else a run has just merged, and that result is opened instead
        else:
            tree.encoding["source"] = str(path)  # as xarray notes it
            return tree


def wait_for_result(folder: Path) -> None:
    """Wait while a run may be between its two renames: for a moment there is no result."""
    path = result_path(folder)
    for _ in range(_TRIES):
        if path.is_dir() or not any(folder.glob(f".{path.name}.*.tmp")):
            return
        time.sleep(0.01)


class OpenResult(LocalStore):
    """The files of one merged result; reading raises once one is not what it was when opened.

    Examples
    --------
    >>> import tempfile
    >>> from .checksums import write_checksums
    >>> path = Path(tempfile.mkdtemp())
    >>> _ = (path / "0").write_bytes(b"chunk")
    >>> write_checksums(path)
    >>> sorted(OpenResult(path).digests)
    ['0']
    """

    def __init__(self, root: Path | str, *, read_only: bool = True) -> None:
        super().__init__(root, read_only=read_only)
        self.digests = listed(Path(root))

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        """Return what is stored under a key, or None."""
        whole = await super().get(key, prototype)
        self._check(key, whole)
        return whole if byte_range is None else await super().get(key, prototype, byte_range)

    def get_sync(self, key: str, *, prototype: Any = None, byte_range: Any = None) -> Any:
        """Return what is stored under a key, or None: the same without waiting in between."""
        options = {"prototype": prototype}
        whole = super().get_sync(key, **options)
        self._check(key, whole)
        if byte_range is None:
            return whole
        return super().get_sync(key, byte_range=byte_range, **options)

    def _check(self, key: str, whole: Any) -> None:
        content = None if whole is None else whole.to_bytes()
        check(Path(self.root), self.digests, key, content)
