"""Style and saving: the same bytes for the same result, whatever the reader's own settings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from ..colours import BASE

__all__ = ["FONT", "save", "style"]

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
    """Draw with this library's settings alone and give the reader's settings back afterwards.

    Text is never read as mathematics, so names from a result stay text; fonts are embedded as
    TrueType in PDF and stay text in SVG.
    """
    base = BASE["light"]
    with matplotlib.rc_context(), warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes in PDF and PNG; it is whole in
        # SVG, in the captions and in the data.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "text.parse_math": False,
                "text.usetex": False,
                "pdf.fonttype": 42,
                "svg.fonttype": "none",
                "svg.hashsalt": "ontogeny",
                "font.family": "DejaVu Sans",
                "font.size": FONT,
                "axes.titlesize": FONT,
                "axes.labelsize": FONT,
                "xtick.labelsize": FONT,
                "ytick.labelsize": FONT,
                "legend.fontsize": FONT,
                "text.color": base["ink"],
                "axes.labelcolor": base["ink"],
                "axes.edgecolor": base["ink-2"],
                "xtick.color": base["ink-2"],
                "ytick.color": base["ink-2"],
                "axes.linewidth": 0.6,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "axes.titlelocation": "left",
                "axes.titlepad": 3.0,
                "axes.labelpad": 2.5,
                "xtick.major.width": 0.6,
                "xtick.minor.width": 0.4,
                "ytick.major.width": 0.6,
                "xtick.major.size": 2.5,
                "xtick.minor.size": 1.5,
                "ytick.major.size": 2.5,
                "lines.linewidth": 1.1,
                "hatch.linewidth": 0.4,
                "grid.linewidth": 0.3,
                "grid.color": base["line"],
            }
        )
        yield


def save(figure: Figure, path: Path, title: str, caption: str) -> None:
    """Write `figure` in the format of the suffix of `path`, with title and caption inside."""
    kind = path.suffix.removeprefix(".")
    words = "Subject" if kind == "pdf" else "Description"
    metadata: dict[str, Any] = {"Title": title, **_NO_ORIGIN[kind]}
    if caption:
        metadata[words] = caption
    figure.savefig(
        path, format=kind, backend=_BACKENDS[kind], dpi=_DOTS_PER_INCH, metadata=metadata
    )
