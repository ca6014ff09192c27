"""What holds of many files of a run alike is said once."""

from __future__ import annotations

import logging
import multiprocessing
from pathlib import Path

logger = logging.getLogger("ontogeny.trajectory")
# Announced in this process, with the run's folder.
topics: set[tuple[str, Path | None]] = set()
# Of all files alike: the first one that is opened shows it.
_FORMATS = ("pickled", "gguf")


def announce(topic: str, text: str, path: Path | None = None) -> None:
    """Say something of a file, once of each topic: a run has a hundred of them.

    With the `path` of a checkpoint it is said once of each run, whose folder holds it. Worker
    processes say nothing of formats; they may be the first to read a file with other tensors.
    """
    key = topic, path and path.parent
    if key not in topics and not (
        topic in _FORMATS and multiprocessing.parent_process()
    ):
        topics.add(key)
        logger.warning("%s", text)
