"""Figures' data and pictures as files, for papers and for other programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ...errors import ArgumentError, check_choice
from ...markup import csv_text
from ...trees import MergedResult
from ...words.catalogue import concepts as say
from ...words.catalogue.captions import CAPTIONS
from ...words.content import Content, read_content
from ...words.formats import step_text
from ..chart.draw import draw_chart
from ..concepts.lives import FEW, SHEET, Concepts, best_words, choice_words, marks_words
from ..figures.drawable import Drawable
from ..figures.tables import latex_table
from ..first_screen.screen import FirstScreen, first_screen
from ..kinds import draw_figure, figure_notes, kind_of, read_drawables
from ..run_differences import difference_of
from ..style import chart_style
from .examples import write_examples
from .overview import entry, write_overview

FORMATS = ("pdf", "svg", "png")  # formats of pictures for papers


def chart_svg(tree: MergedResult) -> str:
    """Return the developmental chart of a merged result as a standalone SVG image.

    It follows the reader's light or dark setting and needs no page around it.

    Parameters
    ----------
    tree
        Merged result, as ``Study.run`` and ``open_study`` return it, or its DataTree.

    Raises
    ------
    ArgumentError
        If `tree` is not a merged result.

    Examples
    --------
    >>> import xarray as xr
    >>> data = xr.Dataset(
    ...     {"loss": ("step", [8.3, 4.2])},
    ...     coords={"step": [0, 100]},
    ...     attrs={"role": "track"},
    ... )
    >>> chart_svg(xr.DataTree.from_dict({"loss": data}))[:4]
    '<svg'
    """
    return draw_chart(read_content(tree), style=chart_style()).svg


def write_figures(
    tree: MergedResult, folder: str | Path, formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Write every figure for papers, with its data as CSV; return the files' paths.

    Files are named after node and figure. A CSV file has one row for each point: first the
    dimensions, then the variables, all points, unrounded; ``chart.csv`` holds the chart's rows and
    ``half-change-steps.csv`` a line for each run and control run, ``<node>-examples.csv`` each pair,
    question or answer at each step. ``first-screen`` is a picture.
    Pictures are one or two columns wide, fonts embedded, and the same bytes for the same result;
    ``captions.txt`` holds their titles and captions. A table is written as CSV and as LaTeX. Of a
    figure with several runs or control runs ``<figure>-difference`` holds what sets the run apart.

    Parameters
    ----------
    tree
        Merged result, as ``Study.run`` and ``open_study`` return it, or its DataTree.
    folder
        Where to write; made if missing, files of the same names are replaced.
    formats
        Of ``"pdf"``, ``"svg"`` and ``"png"``; none writes the data alone.

    Raises
    ------
    ArgumentError
        If `tree` is not a merged result or a format is unknown.

    Examples
    --------
    >>> import tempfile, xarray as xr
    >>> data = xr.Dataset({"loss": ("step", [8.3, 4.2])}, coords={"step": [0, 100]})
    >>> tree = xr.DataTree.from_dict({"loss": data})
    >>> [p.name for p in write_figures(tree, tempfile.mkdtemp(), formats=["svg"])]
    ['chart.csv', 'chart.svg', 'captions.txt']
    """
    kinds = check_formats(formats)
    content = read_content(tree)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    captions: list[str] = []
    written = write_overview(content, target, kinds, captions)
    written += write_concepts(content, target, kinds, captions)
    written += write_examples(content, target)
    for drawable in _with_differences(read_drawables(content)):
        if drawable.problem:
            continue
        path = target / _unused_name(drawable.file_stem, written)
        written.append(path)
        path.write_text(
            csv_text(kind_of(drawable.figure).frame(drawable)), encoding="utf-8"
        )
        caption = drawable.caption
        if drawable.table is not None:
            written.append(path.with_suffix(".tex"))
            written[-1].write_text(latex_table(drawable.table), encoding="utf-8")
        elif kinds:
            pictures, caption = _write_pictures(drawable, content, path, kinds)
            written += pictures
        if kinds or drawable.table is not None:
            captions.append(entry(path.stem, drawable.figure.title, caption))
    if kinds:
        written.append(target / "captions.txt")
        written[-1].write_text("\n".join(captions), encoding="utf-8")
    return written


def _with_differences(drawables: Sequence[Drawable]) -> Iterator[Drawable]:
    """Give every figure, and behind one with several runs what sets the first of them apart."""
    for drawable in drawables:
        yield drawable
        if (difference := difference_of(drawable)) is not None:
            yield difference


def check_formats(formats: Sequence[str]) -> list[str]:
    """Return the formats of pictures, each once.

    Raises
    ------
    ArgumentError
        If one is not of :data:`FORMATS`.

    Examples
    --------
    >>> check_formats(["png", "pdf", "png"])
    ['png', 'pdf']
    """
    if isinstance(formats, str):
        raise ArgumentError(
            f"formats must be a list such as {[formats]!r}; got {formats!r}."
        )
    return list(
        dict.fromkeys(check_choice("formats", kind, FORMATS) for kind in formats)
    )


def _write_pictures(
    drawable: Drawable, content: Content, beside: Path, kinds: Sequence[str]
) -> tuple[list[Path], str]:
    """Write one figure in every format; return the paths and the caption."""
    from ..paper import save, style

    with style():
        notes = figure_notes(drawable, content)
    caption = " ".join(filter(None, [drawable.caption, *notes]))
    title = drawable.figure.title
    return save(
        lambda: draw_figure(drawable, content), beside, kinds, title, caption
    ), caption


def _unused_name(stem: str, written: Sequence[Path]) -> str:
    taken = {path.name for path in written}
    names = (
        f"{stem}{more}.csv"
        for more in ("", *(f"-{n}" for n in range(2, len(taken) + 3)))
    )
    return next(name for name in names if name not in taken)


_LIFE = (
    "Top: the loss; dashed: what guesses cost; grey: control runs. Below: one line a concept, and "
    "behind the point its layer. {chosen} {shades} {marks}"
)
_SHEET = (
    "{shown} Strength over the {checkpoint}s as a share of its peak; grey where it cannot be read "
    "from that checkpoint alone. Below: its strongest context, the strongest token in brackets."
)


def write_concepts(
    content: Content, folder: Path, kinds: Sequence[str], captions: list[str]
) -> list[Path]:
    """Write life lines and contact sheet of a result with concepts; add to the captions.

    Returns the files: ``concepts.csv`` with one row for each concept and step, and the pictures.
    """
    first = first_screen(content)
    if first is None or first.concepts is None or not first.concepts.every:
        return []
    table = folder / "concepts.csv"
    table.write_text(csv_text(_rows(first.concepts)), encoding="utf-8")
    if not kinds:
        return [table]
    captions += [
        f"life-lines\n{first.heading}\n{_life_words(first.concepts)}\n",
        f"concepts\nConcepts\n{_sheet_words(content, first.concepts)}\n",
    ]
    return [table, *_pictures(content, first, first.concepts, folder, kinds)]


def _life_words(concepts: Concepts) -> str:
    marks = marks_words(concepts.lines)
    return _LIFE.format(
        chosen=choice_words(concepts, FEW), shades=say.SHADES, marks=marks
    ).rstrip()


def _sheet_words(content: Content, concepts: Concepts) -> str:
    first, last = (step_text(content.steps[end]) for end in (0, -1))
    sheet = content.voice.fill(_SHEET).format(shown=best_words(concepts, SHEET))
    return CAPTIONS["sheet ends"].format(
        sheet=sheet, clock=content.voice.clock, first=first, last=last
    )


def _pictures(
    content: Content,
    first: FirstScreen,
    concepts: Concepts,
    folder: Path,
    kinds: Sequence[str],
) -> list[Path]:
    # Imported here so that the package opens without the plotting library.
    from ..paper import draw_contact_sheet, draw_life_figure, save

    life = _life_words(concepts)
    sheet = _sheet_words(content, concepts)
    return [
        *save(
            lambda: draw_life_figure(content, first),
            folder / "life-lines",
            kinds,
            first.heading,
            life,
        ),
        *save(
            lambda: draw_contact_sheet(content, concepts),
            folder / "concepts",
            kinds,
            "Concepts",
            sheet,
        ),
    ]


def _rows(concepts: Concepts) -> pd.DataFrame:
    """Return every concept at every step, unrounded."""
    steps = concepts.data["step"].values
    fields = (
        "layer",
        "number",
        "name",
        "given",
        "kind",
        "born",
        "after",
        "before",
        "settled",
        "gone",
        "readable_from",
        "sharpness",
    )
    places = np.array([concept.place for concept in concepts.every])
    once = pd.DataFrame(
        {n: [getattr(concept, n) for concept in concepts.every] for n in fields}
    )
    table = once.rename(columns={"given": "name_given"}).loc[
        np.repeat(once.index, len(steps))
    ]
    table["step"] = np.tile(steps, len(once))
    for name in ("strength", "readability"):
        table[name] = concepts.arrays.over_steps(name)[
            places[:, 0], places[:, 1]
        ].ravel()
    return table
