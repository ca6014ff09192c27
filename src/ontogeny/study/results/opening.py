"""A finished study, opened by its folder or by the data set on the Hub that it was shared as."""

from __future__ import annotations

from pathlib import Path

from ...artefacts import known_as
from ...errors import ArgumentError, StoreError
from ..folder.layout import comparison_path, result_path, settings_path
from .study_result import StudyResult

_URL = "hf://datasets/"


def open_study(folder: str | Path, *, revision: str | None = None) -> StudyResult:
    """Open the result of a study, or a comparison that was written.

    Parameters
    ----------
    folder
        Its folder, a ``result.zarr`` alone, or the data set on the Hub that it was shared as:
        ``"OWNER/NAME"``. A folder goes before a data set of its name;
        ``"hf://datasets/OWNER/NAME"`` is never a folder. A data set is downloaded once and checked
        before anything of it is read: no code of it runs.
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
    is_result = folder.name == result_path(Path()).name and folder.is_dir()
    folder = folder.resolve().parent if is_result else folder
    settings = settings_path(folder)
    is_study = settings.is_file() or comparison_path(folder).is_file()
    if not (is_study or is_result):
        why = f"it has no {settings.name}" if folder.exists() else "it does not exist"
        raise StoreError(f"{folder} is no study folder ({why}).{_instead(folder)}")
    wait_for_result(folder)
    if not result_path(folder).is_dir():
        raise StoreError(
            f"{folder} has no merged result yet; run the study again to finish it."
        )
    return StudyResult(folder)


def _instead(path: Path) -> str:
    """Return what a path is in place of a study, and what takes it; empty where it is not known."""
    if own := known_as(path):
        return f" It is {own}."
    from ...trajectory.order.candidates import holds_checkpoints  # which loads PyTorch

    if path.is_dir() and holds_checkpoints(path):
        return f" It holds checkpoints: ontogeny study {path} begins a study of them."
    return ""


def local_folder(source: str | Path, revision: str | None = None) -> Path:
    """Return the folder of a study: that of this name or, where there is none, of a data set.

    Parameters
    ----------
    source
        A folder, ``"OWNER/NAME"``, or ``"hf://datasets/OWNER/NAME"``, which is never a folder.
    revision
        Branch, tag or commit of the data set; ``main`` by default.

    Raises
    ------
    ArgumentError
        If `revision` is given for a folder.
    StoreError
        If the data set cannot be fetched, or holds no study that may be opened.

    Examples
    --------
    >>> local_folder("studies").as_posix()
    'studies'
    """
    text = str(source)
    if revision is None and not text.startswith(_URL) and Path(source).exists():
        return Path(source)
    # These load PyTorch.
    from ...trajectory.hub.repository import is_name, is_repository
    from .fetching import fetched

    if text.startswith(_URL) and is_name(text.removeprefix(_URL)):
        return fetched(text.removeprefix(_URL), revision)
    if not isinstance(source, Path) and is_repository(text):
        try:
            return fetched(text, revision)
        except StoreError as error:
            raise StoreError(f"there is no folder {text!r}, and {error}") from error
    if revision is not None:
        raise ArgumentError(
            f"revision goes with a data set OWNER/NAME; {text!r} is a folder here, or no name of "
            f"a data set. A folder goes before a data set of its name; {_URL}OWNER/NAME does not."
        )
    return Path(source)
