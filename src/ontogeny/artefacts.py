"""What this library has written itself, told by a path: the files that people mix up.

A command that takes a run is given a study file, one that takes a study is given its page: each
then says what it was given, and the command that takes it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

STUDY = "study.json"  # in the folder of a study
COMPARISON = "comparison.json"  # in that of a comparison
RESULT = "result.zarr"
PROBE = "probe.safetensors"  # what an examination of a study keeps; no weights


def known_as(path: Path) -> str:
    """Return what a path is of this library, and what takes it; empty for all else.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "study.toml"
    >>> _ = path.write_text("trajectory = {folder = 'run'}")
    >>> known_as(path).partition(":")[0]
    'a study file'
    >>> known_as(path.parent)
    ''
    """
    if path.is_dir():
        return _folder(path)
    if path.suffix == ".html":
        return "a page: open it in a browser"
    if path.suffix == ".toml" and _is_study_file(path):
        return f"a study file: ontogeny run {path} computes it"
    return ""


def _folder(path: Path) -> str:
    if (path / STUDY).is_file():
        return (
            f"the folder of a study: ontogeny report {path} writes its page, and ontogeny run "
            f"STUDY_FILE --output {path} goes on with it"
        )
    if (path / COMPARISON).is_file():
        return f"the folder of a comparison: ontogeny report {path} writes its page"
    if path.name == RESULT:
        return f"a result: ontogeny report {path} writes its page"
    return ""


def _is_study_file(path: Path) -> bool:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return False
    return "trajectory" in content or "observables" in content
