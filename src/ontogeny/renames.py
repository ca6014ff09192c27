"""Renames that outlive a network file system which forgets a file for a moment."""

from __future__ import annotations

import errno
import time
from pathlib import Path

_TRIES = 3
_PAUSE = 0.1  # seconds; three times as long before the last try


def rename(source: Path, target: Path) -> None:
    """Put `source` at `target`, which it replaces where that is a file; three tries.

    NFS answers ESTALE where another client has just replaced what it knew. It may have renamed all
    the same: then the source is gone and the target is there.

    Raises
    ------
    OSError
        As `os.replace`; ESTALE after the third try.

    Examples
    --------
    >>> import tempfile
    >>> half = Path(tempfile.mkdtemp()) / "half"
    >>> half.write_text("whole")
    5
    >>> rename(half, half.with_name("file"))
    >>> half.with_name("file").read_text()
    'whole'
    """
    for number in range(_TRIES):
        try:
            source.replace(target)
            return
        except FileNotFoundError:
            if number and target.exists():
                return
            raise
        except OSError as error:
            if error.errno != errno.ESTALE or number == _TRIES - 1:
                raise
            time.sleep(_PAUSE * 3**number)
