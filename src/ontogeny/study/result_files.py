"""The files of a result while it is written: many small ones, each written where it is asked for."""

from __future__ import annotations

from typing import Any

from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.storage import LocalStore


class ResultFiles(LocalStore):
    """A folder that a result is written into, by nobody else and not yet in its place.

    Zarr's own store hands every file to another thread, which costs more than writing the few
    bytes of most variables, and guards each file against readers, of which there are none yet.

    Examples
    --------
    >>> import tempfile
    >>> import xarray as xr
    >>> folder = tempfile.mkdtemp()
    >>> _ = xr.Dataset({"loss": 4.2}).to_zarr(ResultFiles(folder), zarr_format=2)
    >>> float(xr.open_zarr(folder, consolidated=False).loss)
    4.2
    """

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: Any = None
    ) -> Buffer | None:
        """Return what is stored under a key, or None."""
        if byte_range is not None:
            return await super().get(key, prototype, byte_range)
        try:
            content = (self.root / key).read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None
        return (prototype or default_buffer_prototype()).buffer.from_bytes(content)

    async def set(self, key: str, value: Buffer) -> None:
        """Write what is to be stored under a key."""
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value.to_bytes())

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Write what is to be stored under a key, unless something is."""
        if not await self.exists(key):
            await self.set(key, value)

    async def exists(self, key: str) -> bool:
        """Return whether something is stored under a key."""
        return (self.root / key).is_file()
