"""A comparison on disk: opened and reported as a study's folder is."""

from __future__ import annotations

from pathlib import Path

from ..errors import ArgumentError, StoreError
from ..store import write_json
from ..study.folder.layout import comparison_path, settings_path
from ..study.results.result_files import write_result
from ..trees import MergedResult, as_tree


def write_comparison(tree: MergedResult, folder: str | Path) -> Path:
    """Write a comparison into a folder, from which `ontogeny.open_study` opens it again.

    Parameters
    ----------
    tree
        As `compare` returns it.
    folder
        A new folder, an empty one, or that of an earlier comparison, which is replaced.

    Returns
    -------
    pathlib.Path
        The result, ``result.zarr``.

    Raises
    ------
    ArgumentError
        If `tree` is no comparison.
    StoreError
        If the folder holds a study, or other files.
    """
    compared = as_tree(tree)
    if "runs" not in compared.attrs:
        raise ArgumentError("tree must be what compare returns.")
    path = Path(folder)
    if settings_path(path).exists():
        raise StoreError(f"{path} is the folder of a study; write the comparison to another one.")
    others = path.is_dir() and any(p.name[0] != "." for p in path.iterdir())
    if others and not comparison_path(path).exists():
        raise StoreError(f"{path} holds files that are no comparison; give a new folder.")
    path.mkdir(parents=True, exist_ok=True)
    write_json(comparison_path(path), {"format": "ontogeny-comparison-1"})
    return write_result(path, compared)
