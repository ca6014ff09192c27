"""A finished study, opened by its folder or by the data set on the Hub that it was shared as.

A data set is taken for what a stranger made: it is downloaded, checked and unpacked. Only its
result, its frozen settings and the names of its concepts are fetched: no page is opened, no study
file is read and no code of it is run.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import ArgumentError, StoreError
from ...trajectory.hub.client import hub_errors, is_offline, silent_bar
from ...trajectory.hub.repository import is_name, is_repository
from ..folder.layout import comparison_path, result_path, settings_path
from .checksums import check_files, check_listed
from .foreign import ARCHIVE, LARGEST, check_foreign, unpack
from .study_result import StudyResult

_URL = "hf://datasets/"
_SMALL = (settings_path(Path()).name, comparison_path(Path()).name, "names.toml")
_LARGEST_SMALL = 2**24


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
    if not settings.is_file() and not comparison_path(folder).is_file():
        raise StoreError(f"{folder} is no study folder (it has no {settings.name}).")
    wait_for_result(folder)
    if not result_path(folder).is_dir():
        raise StoreError(f"{folder} has no merged result yet; run the study again to finish it.")
    return StudyResult(folder)


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
    patterns = [ARCHIVE, *_SMALL]
    with hub_errors(what, StoreError):
        download = partial(
            snapshot_download,
            repo,
            repo_type="dataset",
            revision=revision,
            allow_patterns=patterns,
            tqdm_class=silent_bar(),
        )
        _check_sizes(repo, _listed(download))
        snapshot = Path(download())
    files = {name for name in patterns if (snapshot / name).is_file()}
    if ARCHIVE not in files or not files & set(_SMALL[:2]):
        raise StoreError(f"{what} is no study that was shared: it has no {ARCHIVE}.")
    name = f"{repo}/{snapshot.name}"
    place = cached_assets_path("ontogeny", "studies", name, assets_dir=constants.HF_ASSETS_CACHE)
    folder = Path(place) / "study"
    with _foreign(what):
        if not _is_whole(folder):
            _unpack(snapshot, sorted(files), folder)
    return folder


def _listed(download: Callable[..., Any]) -> Sequence[Any]:
    """Return what would be downloaded; nothing where only the cache can be asked."""
    from huggingface_hub.errors import DryRunError, HfHubHTTPError

    try:
        return () if is_offline() else download(dry_run=True)
    except DryRunError as error:
        if isinstance(error.__cause__, HfHubHTTPError):
            raise error.__cause__ from None
        return ()


def _check_sizes(repo: str, listed: Sequence[Any]) -> None:
    for file in listed:
        limit = LARGEST if file.filename == ARCHIVE else _LARGEST_SMALL
        if file.file_size > limit:
            raise StoreError(
                f"{file.filename} of {repo} has {file.file_size / 1e9:.2g} GB; at most "
                f"{limit / 1e9:.2g} GB are opened from the Hub."
            )


def _unpack(snapshot: Path, names: list[str], folder: Path) -> None:
    """Unpack whole or not at all; another process may do the same at this moment."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        new = Path(temporary) / "study"
        store = result_path(new)
        store.mkdir(parents=True)
        unpack(snapshot / ARCHIVE, store)
        check_foreign(store)
        check_listed(store)
        for name in names:
            if name != ARCHIVE:
                shutil.copyfile(snapshot / name, new / name)
        shutil.rmtree(folder, ignore_errors=True)  # what is there is not whole
        try:
            new.rename(folder)
        except OSError:
            if not _is_whole(folder):  # else another process was faster
                raise


def _is_whole(folder: Path) -> bool:
    try:
        check_files(result_path(folder), chunks=False)
    except StoreError:
        return False
    return True


@contextmanager
def _foreign(what: str) -> Iterator[None]:
    """Say of which data set an error is; what it advises for a folder of one's own is left out."""
    try:
        yield
    except StoreError as error:
        reason = str(error).split(" Run the study into this folder again", maxsplit=1)[0]
        raise StoreError(f"{what} is not opened: {reason}") from error
