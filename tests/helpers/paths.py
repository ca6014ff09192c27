"""Where the tests find the guides, real data, and each other's helpers."""

import os
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
GUIDES = ROOT / "docs" / "guides"
PAPERS = ROOT / "papers"
PAPERS_GUIDES = PAPERS / "docs" / "guides"

# Real text and labelled sets. Tests that read them are skipped where they are not there.
DATA = Path(os.environ.get("ONTOGENY_DATA", ROOT.parent / "shared" / "data"))


def environment(**changes: str) -> dict[str, str]:
    """Return the environment of a script in another process that imports these helpers."""
    paths = [
        str(TESTS),
        str(ROOT / "examples"),
        *filter(None, [os.environ.get("PYTHONPATH")]),
    ]
    own = {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    return {**os.environ, **own, **changes}


def script(name: str) -> str:
    """Return the path of a helper that is run as a script."""
    return str(TESTS / "helpers" / name)
