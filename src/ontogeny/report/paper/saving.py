"""Style and saving: the same bytes for the same result, whatever the reader's own settings."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from ..colours import BASE

FONT = 7.0
"""Size of text in points, as journals ask for in figures."""

_DOTS_PER_INCH = 300
_BACKENDS = {"pdf": "pdf", "svg": "svg", "png": "agg"}
# Without dates, versions of programs and random names, equal figures are equal files.
_NO_ORIGIN: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


@contextmanager
def style() -> Iterator[None]:
    """Draw with this library's settings alone and give the reader's settings back afterwards."""
    base = BASE["light"]
    with matplotlib.rc_context(), warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes in PDF and PNG; it is whole in
        # SVG, in the captions and in the data.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")
        matplotlib.rcdefaults()
        path = resources.files("ontogeny.report").joinpath("static/paper.mplstyle")
        with resources.as_file(path) as file:
            matplotlib.rc_file(file)
        matplotlib.rc("font", size=FONT)
        matplotlib.rc("text", color=base["ink"])
        matplotlib.rc("axes", labelcolor=base["ink"], edgecolor=base["ink-2"])
        matplotlib.rc("xtick", color=base["ink-2"])
        matplotlib.rc("ytick", color=base["ink-2"])
        matplotlib.rc("grid", color=base["line"])
        yield


def save(
    draw: Callable[[], Figure], stem: Path, kinds: Sequence[str], title: str, caption: str
) -> list[Path]:
    """Write what `draw` returns in each format, with title and caption inside; return the files."""
    paths = [stem.with_suffix(f".{kind}") for kind in kinds]
    with style():
        figure = draw()
        for kind, path in zip(kinds, paths, strict=True):
            path.write_bytes(encoded(figure, kind, title, caption))
    return paths


def fix_layout(figure: Figure) -> None:
    """Lay a figure out for good: every further drawing would move its parts a little."""
    for _ in range(2):
        figure.draw_without_rendering()
    figure.set_layout_engine("none")


def encoded(
    figure: Figure, kind: str, title: str, caption: str, dots_per_inch: int = _DOTS_PER_INCH
) -> bytes:
    """Return `figure` as the content of a file of a format, with title and caption inside."""
    words = "Subject" if kind == "pdf" else "Description"
    metadata: dict[str, Any] = {"Title": title, **_NO_ORIGIN[kind]}
    if caption:
        metadata[words] = caption
    file = io.BytesIO()
    figure.savefig(file, format=kind, backend=_BACKENDS[kind], dpi=dots_per_inch, metadata=metadata)
    return file.getvalue()
