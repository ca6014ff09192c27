"""The life lines and the contact sheet of concepts as files, with their data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ...markup import csv_text
from ...words.content import Content
from ...words.formats import step_text
from ..concepts.lives import FEW, MARKS, SHADES, SHEET, Concepts, best_words, choice_words
from ..first_screen.screen import FirstScreen, first_screen

_LIFE = (
    "Top: the loss; dashed: what guesses cost; grey: control runs. Below: one line a concept, and "
    "behind the point its layer. {chosen} {shades} (Shades: the square of the strength.) {marks}"
)
_SHEET = (
    "{shown} Strength over the steps as a share of its peak; grey where it cannot be read from "
    "that checkpoint alone. Below: its strongest context, the strongest token in brackets."
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
    words = choice_words(concepts, FEW)
    return _LIFE.format(chosen=words, shades=SHADES, marks=MARKS)


def _sheet_words(content: Content, concepts: Concepts) -> str:
    ends = f"{step_text(content.steps[0])} to {step_text(content.steps[-1])}"
    sheet = _SHEET.format(shown=best_words(concepts, SHEET))
    return f"{sheet} From left to right: {content.clock} {ends}, on a logarithmic scale."


def _pictures(
    content: Content, first: FirstScreen, concepts: Concepts, folder: Path, kinds: Sequence[str]
) -> list[Path]:
    # Imported here so that the package opens without the plotting library.
    from ..paper import draw_contact_sheet, draw_life_figure, save

    life, sheet = _life_words(concepts), _sheet_words(content, concepts)
    return [
        *save(lambda: draw_life_figure(content, first), folder / "life-lines", kinds,
              first.heading, life),
        *save(lambda: draw_contact_sheet(content, concepts), folder / "concepts", kinds,
              "Concepts", sheet),
    ]  # fmt: skip


def _rows(concepts: Concepts) -> pd.DataFrame:
    """Return every concept at every step, unrounded."""
    steps = concepts.data["step"].values
    fields = (
        "layer", "number", "name", "given", "kind", "born", "after", "before", "settled", "gone",
        "readable_from", "sharpness",
    )  # fmt: skip
    places = np.array([concept.place for concept in concepts.every])
    once = pd.DataFrame({n: [getattr(concept, n) for concept in concepts.every] for n in fields})
    table = once.rename(columns={"given": "name_given"}).loc[np.repeat(once.index, len(steps))]
    table["step"] = np.tile(steps, len(once))
    for name in ("strength", "readability"):
        table[name] = concepts.arrays.over_steps(name)[places[:, 0], places[:, 1]].ravel()
    return table
