"""A study that was shared as a data set on the Hub, in a folder of this machine.

It is downloaded, unpacked and compared with its list of digests. Only its result, its frozen
settings and the names of its concepts are fetched: no page is opened, no study file is read and no
code of it is run.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from ...errors import StoreError
from ...trajectory.hub.client import hub_errors, silent_bar
from ..folder.layout import comparison_path, result_path, settings_path
from .archive import ARCHIVE, unpack
from .checksums import check_data_only, check_files

_SMALL = (settings_path(Path()).name, comparison_path(Path()).name, "names.toml")


def fetched(repo: str, revision: str | None) -> Path:
    """Return the folder into which a commit of a data set was unpacked.

    Raises
    ------
    StoreError
        If it cannot be fetched, or holds no study that may be opened.
    """
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
