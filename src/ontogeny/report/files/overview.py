"""What the page shows first as files: the first screen, the chart, and its half-change steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...markup import csv_text
from ...words.catalogue.captions import CAPTIONS
from ...words.content import Content
from ...words.landmarks import BEST, control_curve
from ..chart.draw import draw_chart, views_of
from ..figures.frames import chart_frame
from ..first_screen.screen import FirstScreen, first_screen
from ..style import chart_style

_OF_RUNS = "In ink, with its interval: {}; grey: the other runs. On the right: median and range."
_LINES = (
    "Each line is a concept, with its layer behind the point. Darker: closer to its peak "
    "(squared). Hatched: cannot be read from that checkpoint alone. Dot: birth; bar: the "
    "checkpoints between which it lies."
)


def write_overview(
    content: Content, folder: Path, kinds: Sequence[str], captions: list[str]
) -> list[Path]:
    """Write the chart's rows and pictures, and the first screen where the page has one.

    Of several runs there are half-change steps alone. Returns the files and adds to the captions.
    """
    written = []
    for view in views_of(content):
        stem, title, caption = chart_words(content, view)
        written.append(folder / f"{stem}.csv")
        written[-1].write_text(
            csv_text(chart_frame(content.rows, view)), encoding="utf-8"
        )
        if kinds:
            written += write_chart(
                content, view, folder / stem, kinds, (title, caption)
            )
            captions.append(entry(stem, title, caption))
    first = None if content.runs else first_screen(content)
    # Of one model, words alone.
    if kinds and first is not None and first.is_drawn:
        from ..paper import draw_first_screen, save

        words = (first.heading, _of_first_screen(content, first))
        picture = folder / "first-screen"
        written += save(
            lambda: draw_first_screen(content, first), picture, kinds, *words
        )
        captions.append(entry("first-screen", *words))
    return written


def entry(name: str, title: str, caption: str) -> str:
    """Return what ``captions.txt`` says of a picture."""
    return "\n".join(filter(None, [name, title, caption])) + "\n"


def chart_words(content: Content, view: str) -> tuple[str, str, str]:
    """Return the name of the files, title and caption of a view of the rows."""
    if view == "cells":
        return "chart", f"Developmental chart: {content.title}", ""
    runs = next((row.runs for row in content.rows if row.runs), ())
    controlled = any(row.controls for row in content.rows)
    sentences = [
        CAPTIONS["half-changes"].format(
            ", chance or controls" if controlled else " or chance"
        )
    ]
    sentences += ["Small open dots: control runs."] if controlled else []
    caption = " ".join(
        [*sentences, _OF_RUNS.format(runs[0].name)] if runs else sentences
    )
    return (
        "half-change-steps",
        f"Half-change {content.voice.point}s: {content.title}",
        caption,
    )


def _of_first_screen(content: Content, first: FirstScreen) -> str:
    """Return what is drawn: the lines under the loss, its controls, and the lines of concepts."""
    loss = first.loss
    levels = loss.levels if loss is not None else {}
    key = "guesses and best" if BEST in levels else "guesses"
    sentences = [CAPTIONS[key]] if levels else []
    sentences += (
        ["Grey: control runs."] if loss and control_curve(content) is not None else []
    )
    sentences += [_LINES] if first.concepts and first.concepts.lines else []
    return " ".join(sentences)


def write_chart(
    content: Content,
    view: str,
    stem: Path,
    kinds: Sequence[str],
    words: tuple[str, str],
) -> list[Path]:
    """Write a view of the chart in some formats; return the files.

    The developmental chart as SVG is the page's own, which also has dark colours.
    """
    # Imported here so that the package opens without the plotting library.
    from ..paper import draw_chart_figure, save

    drawable_kinds = ["svg"] if view == "cells" and "svg" in kinds else []
    for kind in drawable_kinds:
        svg = draw_chart(content, style=chart_style()).svg
        stem.with_suffix(f".{kind}").write_text(svg, encoding="utf-8")
    if kinds_left := [kind for kind in kinds if kind not in drawable_kinds]:
        save(lambda: draw_chart_figure(content, view), stem, kinds_left, *words)
    return [stem.with_suffix(f".{kind}") for kind in kinds]
