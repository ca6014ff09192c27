"""The page of a study, which is written unless it stands there as it would be.

What a page follows from are the files of the result, the names that people gave to concepts, all
files of this library, and the libraries that draw. Their digest is noted with the stamp of the
page, which tells a page that something else has written.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from pathlib import Path
from typing import Any

from ...atlas.labels import FILE as LABELS
from ...trajectory.weights.files import stamp_of
from ...whole_files import write_whole
from ..cells.environment import versions
from ..folder.code import is_edited, library_code
from ..folder.layout import page_note_path, result_path
from .finished import stamps

_DRAWING = ("jinja2", "markupsafe", "numpy", "pandas", "scipy", "xarray", "zarr")
_KINDS = "ontogeny.report.kinds.base"


def write_page(folder: Path, page: Path) -> Path:
    """Write the page of a study, unless it stands as it would be written; return its path.

    A page with figures of kinds of the user's is always written: what draws them is not known.

    Raises
    ------
    StoreError
        If the study has no result, or one that cannot be read.
    """
    from .opening import open_study

    note = page_note_path(folder)
    made_of = _made_of(folder)
    stands = note.is_file() and note.read_bytes() == _note(made_of, page)
    if stands and not _has_own_kinds():
        return page
    written = open_study(folder).report(page)
    is_known = not (is_edited() or _has_own_kinds())
    write_whole(note, _note(made_of, page) if is_known else b"")
    return written


def _made_of(folder: Path) -> list[Any]:
    files = [folder / LABELS, *sorted(result_path(folder).rglob("*"))]
    return [
        library_code(),
        platform.python_version(),
        versions(_DRAWING),
        stamps(files),
    ]


def _note(made_of: list[Any], page: Path) -> bytes:
    """Return what is noted of a page that stands now."""
    stamp = stamp_of(page.stat()) if page.is_file() else None
    text = json.dumps([made_of, str(page.resolve()), stamp])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest().encode()


def _has_own_kinds() -> bool:
    """Return whether there are figures of kinds that are not this library's."""
    if _KINDS not in sys.modules:
        return False
    kinds = sys.modules[_KINDS].FigureKind.__subclasses__()
    return any(kind.__module__.partition(".")[0] != "ontogeny" for kind in kinds)
