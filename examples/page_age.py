"""Whether the documentation's pictures of pages show the page as it is drawn now.

    python examples/page_age.py

prints which pictures are of another age, and the command that makes them again. Beside the pictures
stands ``pages.json``: of each picture its digest, and the digest of what drew the page (`look`):
templates and styles without comments and white space, and the bundle of the scripts, which has
neither. So a comment makes no picture old, and a change of the page does not fail a test: it is
said when the documentation is built, and refused when a release is tagged.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPORT = "src/ontogeny/report"
LOOKS = (
    "templates/*.html.j2",
    "static/*.css",
    "static/colours.json",
    "static/page.min.js",
)
RECORD = "pages.json"
COMMANDS = {
    "docs/images/gallery": (
        "python examples/gallery.py FOLDER --pictures docs/images/gallery"
    ),
    "docs/images/showcase": (
        "python examples/showcase.py FOLDER TEXT --pictures docs/images/showcase"
    ),
}
_COMMENT = re.compile(r"\{#.*?#\}|<!--.*?-->|/\*.*?\*/", re.S)


def look(root: Path = ROOT) -> str:
    """Return the digest of the templates, styles and scripts that draw a page."""
    digest = hashlib.sha256()
    for pattern in LOOKS:
        for path in sorted((root / REPORT).glob(pattern)):
            words = _COMMENT.sub(" ", path.read_text("utf-8")).split()
            digest.update(f"{path.name}\n{' '.join(words)}\n".encode())
    return digest.hexdigest()


def record(folder: Path, names: Iterable[str]) -> None:
    """Note that these pictures in a folder show the page as it is drawn now."""
    drawn = look()
    new = {
        name: {"look": drawn, "picture": _digest(folder / f"{name}.png")}
        for name in names
    }
    text = json.dumps(recorded(folder) | new, indent=1, sort_keys=True)
    (folder / RECORD).write_text(f"{text}\n", encoding="utf-8")


def recorded(folder: Path) -> dict[str, dict[str, str]]:
    """Return what is noted of the pictures in a folder."""
    path = folder / RECORD
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def changed(folder: Path) -> list[str]:
    """Return the names of pictures that are not those that were noted."""
    noted = recorded(folder)
    return [
        name
        for name, one in noted.items()
        if not (folder / f"{name}.png").exists()
        or _digest(folder / f"{name}.png") != one["picture"]
    ]


def older(root: Path = ROOT) -> list[str]:
    """Return a line for each folder with pictures of a page that is drawn in another way now.

    A picture of which nothing is noted counts as older.
    """
    now, lines = look(root), []
    for place, command in COMMANDS.items():
        looks = {name: one["look"] for name, one in recorded(root / place).items()}
        shown = sorted(path.stem for path in (root / place).glob("*.png"))
        if names := [name for name in shown if looks.get(name) != now]:
            lines.append(
                f"{place}: {', '.join(names)} may show an older page; "
                f"`{command}` makes them again"
            )
    return lines


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    print("\n".join(older()) or "all pictures show the page as it is drawn now")
