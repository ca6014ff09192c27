"""The life lines and the contact sheet of concepts as files, with their data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from .content import Content
from .first_screen import FirstScreen, first_screen
from .formats import plain_text, step_text
from .life_lines import Concepts

_LIFE = (
    "Top: the loss; dashed: what guesses cost; grey: control runs. Below: one line a concept, and "
    "behind the point its layer. Darker: closer to its peak (squared). Hatched: cannot be read "
    "from that checkpoint alone. Dot: birth; bar: the checkpoints between which it lies."
)
_SHEET = (
    "Strength of each concept over the steps as a share of its peak; grey where it cannot be read "
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
    _rows(first.concepts).to_csv(table, index=False)
    if not kinds:
        return [table]
    sheet = _sheet_words(content)
    captions += [f"life-lines\n{first.heading}\n{_LIFE}\n", f"concepts\nConcepts\n{sheet}\n"]
    return [table, *_pictures(content, first, first.concepts, folder, kinds)]


def _sheet_words(content: Content) -> str:
    ends = f"{step_text(content.steps[0])} to {step_text(content.steps[-1])}"
    return f"{_SHEET} From left to right: {content.clock} {ends}, on a logarithmic scale."


def _pictures(
    content: Content, first: FirstScreen, concepts: Concepts, folder: Path, kinds: Sequence[str]
) -> list[Path]:
    # Imported here so that the package opens without the plotting library.
    from .paper import draw_contact_sheet, draw_life_figure, save, style

    paths = []
    with style():
        for stem, figure, title, caption in (
            ("life-lines", draw_life_figure(content, first), first.heading, _LIFE),
            ("concepts", draw_contact_sheet(content, concepts), "Concepts", _sheet_words(content)),
        ):
            for kind in kinds:
                paths.append(folder / f"{stem}.{kind}")
                save(figure, paths[-1], title, caption)
    return paths


def _rows(concepts: Concepts) -> pd.DataFrame:
    """Return every concept at every step, unrounded."""
    data = concepts.data.transpose("layer", "concept", "step", ...)
    steps = data["step"].values
    fields = (
        "layer", "number", "name", "kind", "born", "after", "before", "settled", "gone",
        "readable_from", "sharpness",
    )  # fmt: skip
    parts = []
    for each in concepts.every:
        one = pd.DataFrame({name: [getattr(each, name)] * len(steps) for name in fields})
        one["name"] = plain_text(each.name)
        one["step"] = steps
        for name in ("strength", "readability"):
            one[name] = np.asarray(data[name].values[each.place])
        parts.append(one)
    return pd.concat(parts)
