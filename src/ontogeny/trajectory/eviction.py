"""Deleting chosen files of a Hub cache through huggingface_hub's own cache functions."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from .hub_client import cache_lock

__all__ = ["delete_files"]

logger = logging.getLogger("ontogeny.trajectory")


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
    from huggingface_hub import scan_cache_dir

    with cache_lock:
        _delete_partial(snapshot, files)
        if not snapshot.exists():
            return
        info = scan_cache_dir(cache)
        revisions = [
            r for repo in info.repos for r in repo.revisions if r.snapshot_path == snapshot
        ]
        if not revisions:
            why = "; ".join(str(warning) for warning in info.warnings)
            logger.warning("%s cannot be deleted: the cache cannot be scanned (%s)", snapshot, why)
            return
        (revision,) = revisions
        ours = [
            f for f in revision.files if f.file_path.parent == snapshot and f.file_name in files
        ]
        if len(ours) == len(revision.files):
            info.delete_revisions(revision.commit_hash).execute()
        else:
            info.delete_files(*ours).execute()


def _delete_partial(snapshot: Path, files: Mapping[str, str]) -> None:
    """Delete what a killed download left; a finished or stopped one leaves nothing."""
    blobs = snapshot.parent.parent / "blobs"
    for digest in files.values():
        for path in blobs.glob(f"{digest}.*.incomplete"):
            path.unlink(missing_ok=True)
