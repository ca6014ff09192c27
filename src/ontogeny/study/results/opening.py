"""A finished study, opened by its folder or by the data set on the Hub that it was shared as.

A data set is downloaded, unpacked and compared with its list of digests. Only its result, its
frozen settings and the names of its concepts are fetched: no page is opened, no study file is read
and no code of it is run.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from ...artefacts import known_as
from ...errors import ArgumentError, StoreError
from ...trajectory.hub.client import hub_errors, silent_bar
from ...trajectory.hub.repository import is_name, is_repository
from ...trajectory.order.candidates import holds_checkpoints
from ..folder.layout import comparison_path, result_path, settings_path
from .archive import ARCHIVE, unpack
from .checksums import check_data_only, check_files
from .study_result import StudyResult

_URL = "hf://datasets/"
_SMALL = (settings_path(Path()).name, comparison_path(Path()).name, "names.toml")


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
    if text.startswith(_URL) and is_name(text.removeprefix(_URL)):
        return _fetched(text.removeprefix(_URL), revision)
    if not isinstance(source, Path) and is_repository(text):
        try:
            return _fetched(text, revision)
        except StoreError as error:
            raise StoreError(f"there is no folder {text!r}, and {error}") from error
    if revision is not None:
        raise ArgumentError(
            f"revision goes with a data set OWNER/NAME; {text!r} is a folder here, or no name of "
            f"a data set. A folder goes before a data set of its name; {_URL}OWNER/NAME does not."
        )
    return Path(source)


def _fetched(repo: str, revision: str | None) -> Path:
    """Return the folder into which a commit of a data set was unpacked."""
    from huggingface_hub import cached_assets_path, constants, snapshot_download

    what = f"the data set {repo}" + ("" if revision is None else f" at {revision}")
    with hub_errors(what, StoreError):
        snapshot = Path(
            snapshot_download(
                repo,
                repo_type="dataset",
                revision=revision,
                allow_patterns=[ARCHIVE, *_SMALL],
                tqdm_class=silent_bar(),
            )
        )
    files = {name for name in (ARCHIVE, *_SMALL) if (snapshot / name).is_file()}
    if ARCHIVE not in files or not files & set(_SMALL[:2]):
        raise StoreError(f"{what} is no study that was shared: it has no {ARCHIVE}.")
    name = f"{repo}/{snapshot.name}"
    place = cached_assets_path(
        "ontogeny", "studies", name, assets_dir=constants.HF_ASSETS_CACHE
    )
    folder = Path(place) / "study"
    if not _is_whole(folder):
        try:
            _unpack(snapshot, sorted(files - {ARCHIVE}), folder)
        except StoreError as error:  # what it advises is for a folder of one's own
            reason = str(error).partition(" Run the study into this folder again")[0]
            raise StoreError(f"{what} is not opened: {reason}") from error
    return folder


def _unpack(snapshot: Path, names: list[str], folder: Path) -> None:
    """Unpack whole or not at all; another process may do the same at this moment."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        new = Path(temporary) / "study"
        unpack(snapshot / ARCHIVE, result_path(new))
        check_files(result_path(new))
        check_data_only(result_path(new))
        for name in names:
            shutil.copyfile(snapshot / name, new / name)
        shutil.rmtree(folder, ignore_errors=True)  # what is there is not whole
        try:
            new.rename(folder)
        except OSError:
            if not _is_whole(folder):  # else another process was faster
                raise


def _is_whole(folder: Path) -> bool:
    try:
        check_files(result_path(folder))
    except StoreError:
        return False
    return True
