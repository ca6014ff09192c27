"""What holds of many files of a run alike is said once."""

from __future__ import annotations

import logging
import multiprocessing

logger = logging.getLogger("ontogeny.trajectory")
said: set[str] = set()


def announce(topic: str, text: str) -> None:
    """Say something of a file, once of each topic: a run has a hundred of them.

    Worker processes read the same files, and say nothing.
    """
    if topic not in said and multiprocessing.parent_process() is None:
        said.add(topic)
        logger.warning("%s", text)
