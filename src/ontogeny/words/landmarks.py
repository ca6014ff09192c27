"""What a run has passed, read from the result: lines under the loss, and what became of it.

Nothing here is worked out anew. Whether the loss changed, and whether by more than in control runs,
are the verdicts of its row; when it passed a line is what the node of the loss says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import t

from .content import Content, Node
from .reasons import UNJUDGED
from .row_words import direction
from .rows import Row
from .since_base import forgotten, least, why
from .states import NO_MORE

# What the loss can pass: ends of the variables' names, and what the page calls them.
LINES = {"unigram": "{word} frequencies", "bigram": "bigrams"}

# The same of the model itself, the means of its predictions: below them it uses more than that.
OF_MODEL = {"own_unigram": "its own {word} frequencies", "own_bigram": "its own bigrams"}

# What the loss gains by: how often words occur, the token before, what else stands around.
GAINS = ("frequencies", "before", "context")


@dataclass(frozen=True)
class Gain:
    """What lowered the loss, when half of that was done, and the interval of that step."""

    kind: str
    step: float
    low: float
    high: float


@dataclass(frozen=True)
class Line:
    """What a guess costs in the end, and from when on the loss stays below it; NaN if unknown.

    ``state`` is one of

    - ``"passed"``: with any choice of texts, and not from the first step on
    - ``"always"``: the same, from the first step on
    - ``"unsure"``: it ends below on these texts, but not surely on others
    - ``"left"``: it was below, and does not stay there
    - ``"never"``: it is not below at any step
    """

    words: str
    level: float
    state: str
    low: float = math.nan
    high: float = math.nan

    @property
    def passed(self) -> bool:
        """Whether the last loss is below the line, whichever texts are chosen."""
        return self.state in ("passed", "always")


@dataclass(frozen=True)
class LossStory:
    """The loss of a run: its ends, lines and controls, and the row that holds its verdict.

    ``of_model`` holds the lines of the model's own frequencies at the last step. They tell whether
    it uses what stands around a token: frequencies learned from more text pass the other lines too.
    ``gains`` holds what surely lowered the loss, in the order in which half of it was done.

    ``outcome`` is one of

    - ``"fell"``: by more than chance and noise, and by more than in control runs where there are
      enough of them
    - ``"fell as controls"``: not surely by more than in control runs
    - ``"undecided"``: by more than in every control run, which does not decide
    - ``"fell as renamed"``: not surely by more than on the same texts with all words renamed, or
      not surely below a blind guess
    - ``"forgot"``: it rose by more than texts and motion give, since a trained start
    - ``"rose"``: by more than chance and noise; since a trained start, than the noise of texts
    - ``"no course"``: by more than noise, but chance, or noise between checkpoints, may give the
      same
    - ``"still"``: by no more than its noise
    - ``"unjudged"``: too few checkpoints, an unknown noise, or slow noise looks the same

    ``best`` is the lowest loss, at ``best_step`` with its interval; ``rises`` whether the last one
    is higher by more than its noise. ``lost_after`` is the last step with a finite loss, NaN unless
    later ones have none. ``based`` is whether the first step is that of a base. ``why`` is what
    moved the loss since a trained start, if neither learning nor forgetting is shown
    (`ontogeny.words.since_base`), and ``forgot`` what was forgotten.
    """

    title: str
    units: str
    first: float
    last: float
    uniform: float
    lines: dict[str, Line]
    of_model: dict[str, Line]
    gains: tuple[Gain, ...]
    outcome: str
    row: Row | None
    best: float = math.nan
    best_step: float = math.nan
    best_low: float = math.nan
    best_high: float = math.nan
    rises: bool = False
    lost_after: float = math.nan
    based: bool = False
    why: str = ""
    forgot: str = ""

    @property
    def uses_context(self) -> bool | None:
        """Whether it surely uses what stands around a token; None if that was not measured."""
        line = self.of_model.get("own_unigram")
        return None if line is None else line.passed


def read_loss(content: Content) -> LossStory | None:
    """Return the story of the loss, none where it was not measured."""
    node = track_node(content)
    if node is None or content.track is None:
        return None
    finite = np.isfinite(content.track.values)
    losses, steps = content.track.values[finite], content.track.steps[finite]
    row = node.rows[0] if node.rows else None
    data = node.dataset
    return LossStory(
        title=content.track.title,
        units=content.track.units,
        first=float(losses[0]),
        last=float(losses[-1]),
        uniform=_number(data, "loss_uniform"),
        lines=_lines(content, node, LINES),
        of_model=_lines(content, node, OF_MODEL),
        gains=_gains(data),
        outcome=_outcome(row, len(losses), data),
        row=row,
        **_lowest(data, losses, steps),
        lost_after=math.nan if finite[-1] else float(steps[-1]),
        based=content.based,
        why=why(data),
        forgot=forgotten(data) if row is not None and row.lost else "",
    )


def _lowest(data: xr.Dataset, losses: np.ndarray, steps: np.ndarray) -> dict[str, Any]:
    """Return the lowest loss, its step with an interval, and whether the last one is higher.

    Steps of the interval have a loss that is not surely above the lowest: paired over texts where
    each has one of its own, at a level that allows for the choice among all steps.
    """
    at, noise = int(losses.argmin()), np.zeros(len(losses))
    error, of_text = data.get("loss_stderr"), data.get("loss_of_text")
    if of_text is not None and set(of_text.dims) == {"step", "text"}:
        values = of_text.transpose("step", "text").sel(step=steps)
        weights = data.get("loss_weights", xr.ones_like(of_text)).sel(step=steps)
        share = (weights / weights.sum("text")).transpose("step", "text").values
        change = values.values - values.values[at]
        spread = share * (change - np.nansum(share * change, axis=1, keepdims=True))
        count = int((np.nan_to_num(share) > 0).any(axis=0).sum())
        errors = np.sqrt(np.nansum(spread**2, axis=1) * count / max(count - 1, 1))
        noise = t.isf(0.025 / len(losses), count - 1) * errors if count > 1 else noise + math.inf
    elif error is not None and error.dims == ("step",) and bool(error.notnull().any()):
        noise += 1.96 * math.sqrt(2) * float(error.dropna("step")[-1])
    apart = losses - losses[at] > noise
    before, after = (steps[side][~apart[side]] for side in (slice(at + 1), slice(at, None)))
    return {
        "best": float(losses[at]),
        "best_step": float(steps[at]),
        "best_low": float(before[0]),
        "best_high": float(after[-1]),
        "rises": bool(apart[-1] and losses[-1] - losses[at] > 0.02 * abs(losses[at])),
    }


def _outcome(row: Row | None, measured: int, data: xr.Dataset) -> str:
    """Return what became of the loss; renamed words judge it, or pairs since a trained start."""
    if row is None or measured < 2:
        return "unjudged"
    if row.lost:
        return "forgot"
    judged = {"falls": "loss_p_learned", "rises": "loss_p_lost"}.get(direction(row), "")
    if row.moved and not row.learned and math.isfinite(_number(data, judged)):
        if direction(row) == "falls":
            return "fell as renamed"
        if row.change > least(data):
            return "rose"
    if row.state.kind in UNJUDGED:
        return "unjudged"
    if row.state.kind == "none":
        return "no course" if row.moved else "still"
    if direction(row) != "falls":
        return "rose" if direction(row) == "rises" else "unjudged"
    if row.outside and row.can_learn and not row.learned and row.controlled:
        return "undecided"
    no_more = row.state.kind in NO_MORE  # outside by less than every control
    short = no_more or (row.state.kind == "beyond" and row.can_learn)
    return "fell as controls" if short else "fell"


def _lines(content: Content, node: Node, names: Mapping[str, str]) -> dict[str, Line]:
    """Return the lines of these names that the result has, in their order."""
    lines = {name: _line(content, node.dataset, name, words) for name, words in names.items()}
    return {name: line for name, line in lines.items() if line is not None}


def _line(content: Content, data: xr.Dataset, name: str, words: str) -> Line | None:
    """Return a line with the step from which on the loss is below it."""
    if f"loss_{name}" not in data or f"loss_below_{name}" not in data or content.track is None:
        return None
    if not set(data[f"loss_{name}"].dims) <= {"step"}:  # each run of a comparison has its own
        return None
    finite = np.isfinite(content.track.values)
    values, steps = content.track.values[finite], content.track.steps[finite]
    levels = np.broadcast_to(data[f"loss_{name}"].values.astype(float), finite.shape)[finite]
    if not np.isfinite(levels).all():
        return None
    level, words = float(levels[-1]), content.voice.fill(words)
    step, low, high = (_number(data, f"loss_below_{name}{end}") for end in ("", "_low", "_high"))
    if not (values < levels).any():
        return Line(words, level, "never")
    if not math.isfinite(step):
        return Line(words, level, "left")
    if not math.isfinite(high):
        return Line(words, level, "unsure")
    state = "always" if high == steps[0] else "passed"
    return Line(words, level, state, low, high)


def _gains(data: xr.Dataset) -> tuple[Gain, ...]:
    """Return the gains that are sure, whichever texts are chosen."""
    gains = [
        Gain(kind, *(_number(data, f"loss_half_{kind}{end}") for end in ("", "_low", "_high")))
        for kind in GAINS
    ]
    return tuple(sorted((g for g in gains if math.isfinite(g.high)), key=lambda g: g.high))


def _number(data: xr.Dataset, name: str) -> float:
    """Return a single number of a node, NaN where it has none."""
    if name not in data or data[name].size != 1:
        return math.nan
    return float(data[name].values.reshape(-1)[0])


def control_curve(content: Content) -> tuple[Sequence[float], Sequence[float]] | None:
    """Return the lower and upper ends of the control runs' loss at the steps of the loss."""
    node = track_node(content)
    ends = [node.dataset.get(f"loss_control_{end}") for end in ("low", "high")] if node else []
    outer = [v.min("run") if "low" in str(v.name) else v.max("run")
             for v in ends if v is not None and v.dims == ("run", "step")]  # fmt: skip
    curves = [
        v.values.astype(float).tolist()
        for v in outer or ends
        if v is not None and v.dims == ("step",)
    ]
    return (curves[0], curves[1]) if len(curves) == 2 else None


def track_node(content: Content) -> Node | None:
    """Return the node of the loss."""
    return next((node for node in content.nodes if node.role == "track"), None)
