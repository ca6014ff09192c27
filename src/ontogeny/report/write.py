"""The page as a file, whole or not at all."""

from __future__ import annotations

import glob
from pathlib import Path

import xarray as xr

from ..errors import ArgumentError
from ..store import sweep, write_whole
from .content import read_content
from .page import render_page


def write(tree: xr.DataTree, path: str | Path) -> Path:
    """Write a merged result as one HTML file that opens without a network, and return its path.

    Parameters
    ----------
    tree
        Merged result, as ``Study.run`` returns it or ``xarray.open_datatree`` opens it.
    path
        File to write; missing folders are made, an existing file is replaced at once.

    Raises
    ------
    ArgumentError
        If `tree` is not a merged result, or `path` is a folder.

    Examples
    --------
    >>> import tempfile
    >>> data = xr.Dataset(
    ...     {"loss": ("step", [8.3, 4.2])}, coords={"step": [0, 100]}, attrs={"role": "track"}
    ... )
    >>> folder = tempfile.mkdtemp()
    >>> write(xr.DataTree.from_dict({"loss": data}), folder + "/report.html").name
    'report.html'
    """
    target = Path(path)
    if target.is_dir():
        raise ArgumentError(
            f"path must name a file such as {target / 'report.html'}; it is a folder."
        )
    page = render_page(read_content(tree))
    write_whole(target, page.encode())
    sweep(target.parent, f".{glob.escape(target.name)}.*.tmp")
    return target
