"""What the model puts in the gap of a few sentences: its first answer, at every step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ...figures.tables import percent
from ...words.content import Content
from ...words.formats import plain_text, step_text
from ...words.nodes import Node
from ..concepts.tokens import Pieces

COLUMNS = 5  # steps that the table shows beside the current one

SIDE = 60  # characters that are shown on each side of a gap


@dataclass(frozen=True)
class Answer:
    """The likeliest token of one gap at one step; `share` sets its tint, `right` marks it."""

    token: str
    probability: str
    share: float
    right: bool


@dataclass(frozen=True)
class Gap:
    """One sentence with a gap, and its first answers at the steps of the table."""

    before: str
    after: str
    right: str
    leads: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Cloze:
    """The table of gaps; ``same`` counts the gaps that share the commonest first answer."""

    node: Node
    steps: tuple[str, ...]
    gaps: tuple[Gap, ...]
    same: tuple[int, ...]
    payload: dict[str, Any]


def read_cloze(content: Content) -> Cloze | None:
    """Return the table of the first node that holds answers to gaps, if there is one."""
    variables = ("answer_id", "answer_probability", "gap_before")
    node = next(
        (n for n in content.nodes if all(w in n.dataset for w in variables)), None
    )
    if node is None or "step" not in node.dataset["answer_id"].dims:
        return None
    data = node.dataset
    ids = data["answer_id"].transpose("step", "gap", "rank").values[..., 0]
    shares = data["answer_probability"].transpose("step", "gap", "rank").values[..., 0]
    is_complete = np.isfinite(shares.astype(float)).all(axis=1)
    if not is_complete.any():
        return None
    steps = data["step"].values[is_complete].astype(int)
    ids = ids[is_complete].astype(int)
    shares = shares[is_complete].astype(float)
    pieces = Pieces.of(data)
    places = pieces.all_places(ids)
    picks = np.unique(
        np.linspace(0, len(steps) - 1, min(COLUMNS, len(steps))).round().astype(int)
    )
    right = (
        data["right_id"].values.astype(int)
        if "right_id" in data
        else np.full(ids.shape[1], -1)
    )

    def answer(t: int, g: int) -> Answer:
        share = shares[t, g]
        is_right = bool(ids[t, g] == right[g])
        text = pieces.texts[places[t, g]]
        return Answer(text, percent(share), float(share), is_right)

    gaps = tuple(
        Gap(
            before=_text(data, "gap_before", g),
            after=_text(data, "gap_after", g),
            right=pieces.text(int(right[g])) if right[g] >= 0 else "",
            leads=_leads(data, g),
            answers=tuple(answer(t, g) for t in picks),
        )
        for g in range(ids.shape[1])
    )
    same = [int(np.unique(row, return_counts=True)[1].max()) for row in ids]
    payload = {
        "columns": picks.tolist(),
        "steps": steps.tolist(),
        "tokens": pieces.texts,
        "first": places.tolist(),
        "share": np.round(shares, 4).tolist(),
        "right": (ids == right).astype(int).tolist(),
        "same": same,
    }
    heads = tuple(step_text(step) for step in steps[picks])
    return Cloze(node, heads, gaps, tuple(same[t] for t in picks), payload)


def _text(data: xr.Dataset, name: str, gap: int) -> str:
    """Return one side of a gap, cut to the words beside it."""
    text = " ".join(plain_text(data[name].values[gap]).split()) if name in data else ""
    if len(text) <= SIDE:
        return text
    if name == "gap_before":
        return "…" + text[-SIDE:].partition(" ")[2]
    return text[:SIDE].rpartition(" ")[0] + "…"


def _leads(data: xr.Dataset, gap: int) -> str:
    """Return the step from which on the right answer leads, empty where it never does."""
    if "right_leads_from" not in data:
        return ""
    step = float(data["right_leads_from"].values[gap])
    return step_text(step) if math.isfinite(step) else ""
