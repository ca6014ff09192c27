"""What the page shows first as files: the first screen, the chart, and its half-change steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..words.content import Content
from ..words.landmarks import control_curve
from .chart import draw_chart, views_of
from .first_screen import FirstScreen, first_screen
from .frames import chart_frame
from .style import chart_style

_HALF_CHANGES = (
    "A dot stands where half of the way from the first to the last value was done; the bar is its "
    "95 % interval. Open: moved by no more than noise{} give."
)
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
        chart_frame(content.rows, view).to_csv(written[-1], index=False)
        if kinds:
            paths = [written[-1].with_suffix(f".{kind}") for kind in kinds]
            write_chart(content, view, paths, (title, caption))
            written += paths
            captions.append(entry(stem, title, caption))
    first = first_screen(content)
    if kinds and first is not None:
        from .paper import draw_first_screen

        paths = [folder / f"first-screen.{kind}" for kind in kinds]
        words = (first.heading, _of_first_screen(content, first))
        _save(lambda: draw_first_screen(content, first), paths, words)
        captions.append(entry("first-screen", *words))
        written += paths
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
    said = [_HALF_CHANGES.format(", chance or controls" if controlled else " or chance")]
    said += ["Small open dots: control runs."] if controlled else []
    caption = " ".join([*said, _OF_RUNS.format(runs[0].name)] if runs else said)
    return "half-change-steps", f"Half-change steps: {content.title}", caption


def _of_first_screen(content: Content, first: FirstScreen) -> str:
    """Return what is drawn: the lines under the loss, its controls, and the lines of concepts."""
    loss = first.loss
    lined = loss is not None and (bool(loss.lines) or math.isfinite(loss.uniform))
    said = ["Dashed: what guesses cost."] if lined else []
    said += ["Grey: control runs."] if loss and control_curve(content) is not None else []
    said += [_LINES] if first.concepts and first.concepts.lines else []
    return " ".join(said)


def write_chart(content: Content, view: str, paths: Sequence[Path], words: tuple[str, str]) -> None:
    """Write a view of the chart in the formats of the suffixes of `paths`.

    The developmental chart as SVG is the page's own, which also has dark colours.
    """
    # Imported here so that the package opens without the plotting library.
    from .paper import draw_chart_figure

    own = [path for path in paths if path.suffix == ".svg" and view == "cells"]
    for path in own:
        path.write_text(draw_chart(content, style=chart_style()).svg, encoding="utf-8")
    if drawn := [path for path in paths if path not in own]:
        _save(lambda: draw_chart_figure(content, view), drawn, words)


def _save(draw: Callable[[], Any], paths: Sequence[Path], words: tuple[str, str]) -> None:
    from .paper import save, style

    with style():
        figure = draw()
        for path in paths:
            save(figure, path, *words)
