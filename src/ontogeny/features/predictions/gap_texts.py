"""Gaps and answers as people read them, for tables and labels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from ...figures.tables import percent
from ...inputs.pieces import in_words, shown
from ...observables.pieces import written

_SHOWN = 40  # characters on each side of a gap


def labelled(data: xr.Dataset) -> xr.Dataset:
    """Return data with a label for each gap, and its texts as the table writes them.

    Parameters
    ----------
    data
        The answers over ``step``, ``gap`` and ``rank``, the texts around each gap, and the pieces
        of all ids.

    Returns
    -------
    xarray.Dataset
        With the number of each gap and its right token as the labels of ``gap``, and over ``gap``
        ``gap_text``, ``right_text``, and the first answers ``answer_at_first`` and
        ``answer_at_last`` at the first and the last step that are there.
    """
    pieces = written(data)
    right = [_token(pieces[i]) if i >= 0 else "" for i in data.right_id.values.tolist()]
    sides = zip(data.gap_before.values, data.gap_after.values, strict=True)
    mask = data.answer_probability.notnull().all(("gap", "rank")).values
    ends = {"first": np.argmax(mask), "last": len(mask) - 1 - np.argmax(mask[::-1])}
    texts = {
        "gap_text": [_short(str(before), str(after)) for before, after in sides],
        "right_text": right,
        **{f"answer_at_{end}": _answers(data.isel(step=at), pieces) for end, at in ends.items()},
    }
    labels = [f"{i} {text}".strip() for i, text in enumerate(right, start=1)]
    data = data.assign_coords(gap=np.array(labels, dtype=str))
    return data.assign({name: ("gap", np.array(v, dtype=str)) for name, v in texts.items()})


def _answers(data: xr.Dataset, pieces: Mapping[int, str]) -> list[str]:
    first = data.isel(rank=0)
    ids, shares = first.answer_id.values.tolist(), first.answer_probability.values.tolist()
    return [f"{_token(pieces[i])} {percent(p)}" for i, p in zip(ids, shares, strict=True)]


def _token(piece: str) -> str:
    """Return a piece without the space that many begin with; white space itself in words."""
    return shown(piece.strip(" ")) or in_words(piece)


def _short(before: str, after: str) -> str:
    """Return a text with a gap, cut at a distance from it."""
    before, after = (" ".join(f"|{side}|".split())[1:-1] for side in (before, after))
    left = before if len(before) <= _SHOWN else f"…{before[-_SHOWN:]}"
    right = after if len(after) <= _SHOWN else f"{after[:_SHOWN]}…"
    return f"{shown(left)}____{shown(right)}"
