"""The page as a file, whole or not at all."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from ...claims.expectations import Expectation
from ...errors import ArgumentError
from ...trees import MergedResult
from ...whole_files import sweep, write_whole
from ...words.content import read_content
from .html import render_page
from .live import Live


def write(
    tree: MergedResult,
    path: str | Path,
    live: Live | None = None,
    expected: Sequence[Expectation] = (),
) -> Path:
    """Write a merged result as one HTML file that opens without a network, and return its path.

    Parameters
    ----------
    tree
        Merged result, as ``Study.run`` and ``open_study`` return it, or its DataTree.
    path
        File to write; missing folders are made, an existing file is replaced at once.
    live
        Says on the page that the run was still training, and lets the page refresh itself.

    expected
        What somebody expected of the run: the first screen says what is not so.

    Raises
    ------
    ArgumentError
        If `tree` is not a merged result, or `path` is a folder.

    Examples
    --------
    >>> import tempfile, xarray as xr
    >>> data = xr.Dataset(
    ...     {"loss": ("step", [8.3, 4.2])},
    ...     coords={"step": [0, 100]},
    ...     attrs={"role": "track"},
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
    page = render_page(read_content(tree), live=live, expected=expected)
    write_whole(target, page.encode())
    sweep(target.parent, f".{glob.escape(target.name)}.*.tmp")
    return target
