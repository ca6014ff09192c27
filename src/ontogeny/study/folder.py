"""A finished study on disk, opened by its folder."""

from __future__ import annotations

from pathlib import Path

from ..errors import StoreError
from .fetched import local_folder
from .layout import comparison_path, result_path, settings_path
from .study_result import StudyResult


def open_study(folder: str | Path, *, revision: str | None = None) -> StudyResult:
    """Open the result of a study, or a comparison that was written.

    Parameters
    ----------
    folder
        Its folder, or the data set on the Hub that it was shared as: ``"OWNER/NAME"``. A folder
        goes before a data set of its name; ``"hf://datasets/OWNER/NAME"`` is never a folder. A
        data set is downloaded once and checked before anything of it is read: no code of it runs.
    revision
        Branch, tag or commit of the data set; ``main`` by default.

    Raises
    ------
    StoreError
        If `folder` is no study, or has no merged result yet; or if the data set cannot be fetched,
        or does not hold what a shared study holds.
    ArgumentError
        If `revision` is given with a folder.
    """
    from .opened import wait_for_result  # which imports Zarr

    folder = local_folder(folder, revision)
    settings = settings_path(folder)
    if not settings.exists() and not comparison_path(folder).exists():
        raise StoreError(f"{folder} is no study folder (it has no {settings.name}).")
    wait_for_result(folder)
    if not result_path(folder).is_dir():
        raise StoreError(f"{folder} has no merged result yet; run the study again to finish it.")
    return StudyResult(folder)
