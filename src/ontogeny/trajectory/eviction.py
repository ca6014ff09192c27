"""Deleting chosen files of a Hub cache through huggingface_hub's own cache functions."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from .hub_client import cache_lock

__all__ = ["delete_files"]

logger = logging.getLogger("ontogeny.trajectory")
_TRIES = 5  # other processes delete and download, which spoils a scan, hardly every one


def delete_files(cache: Path, snapshot: Path, files: Mapping[str, str]) -> None:
    """Delete files of one snapshot folder, and the snapshot itself if they are all it holds.

    Blobs that other snapshots share survive; so do other files of the snapshot.

    Parameters
    ----------
    cache
        Folder of the Hub cache.
    snapshot
        ``<cache>/models--<owner>--<name>/snapshots/<commit>``.
    files
        ``{file name: digest}``.
    """
    with cache_lock:
        _delete_partial(snapshot, files)
        why = ""
        for _ in range(_TRIES):
            if not snapshot.exists():
                return
            try:
                why = _delete_listed(cache, snapshot, files)
            except OSError as error:
                why = str(error)
            if not why:
                return
        logger.warning("%s cannot be deleted: %s", snapshot, why)


def _delete_listed(cache: Path, snapshot: Path, files: Mapping[str, str]) -> str:
    """Delete what the cache's listing holds of `files`; return why not, or an empty string."""
    from huggingface_hub import scan_cache_dir

    info = scan_cache_dir(cache)
    found = [r for repo in info.repos for r in repo.revisions if r.snapshot_path == snapshot]
    if not found:
        return "; ".join(["the cache cannot be scanned", *map(str, info.warnings)])
    (revision,) = found
    ours = [f for f in revision.files if f.file_path.parent == snapshot and f.file_name in files]
    if len(ours) == len(revision.files):
        info.delete_revisions(revision.commit_hash).execute()
    else:
        info.delete_files(*ours).execute()
    return ""


def _delete_partial(snapshot: Path, files: Mapping[str, str]) -> None:
    """Delete what a killed download left; a finished or stopped one leaves nothing."""
    blobs = snapshot.parent.parent / "blobs"
    try:
        for digest in files.values():
            for path in blobs.glob(f"{digest}.*.incomplete"):
                path.unlink(missing_ok=True)
    except FileNotFoundError:  # another process has just deleted the whole repository
        return
