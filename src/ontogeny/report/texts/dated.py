"""Dated texts: from which step on the run predicts each token of two texts for good."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...words.catalogue import DATED, DATED_FROM_BASE
from ...words.content import Content
from ...words.formats import joined, plain_text, step_text, value_range
from ..concepts.tokens import Pieces
from ..scales import StepScale
from ..style import SHADES
from .dates import GAIN, LATER, chosen, dates
from .example import MOST_TOKENS, Text, Token, text_of
from .tokens import ShownTokens, first_with


@dataclass(frozen=True)
class Dated:
    """A token and its date; `state` is given, never, lost, late or good, `shade` that of its step.

    ``by_base`` is whether the base that was tuned predicts it.
    """

    token: Token
    state: str
    step: int | None = None
    shade: int = 0
    leads: bool = False
    by_base: bool = False


@dataclass(frozen=True)
class Line:
    """One text with its dates."""

    text: Text
    tokens: tuple[Dated, ...]


@dataclass(frozen=True)
class Beside:
    """The texts under a control run and under the run, both at the `steps` of the control."""

    steps: str
    lines: tuple[tuple[str, tuple[Line, ...]], ...]


@dataclass(frozen=True)
class DatedTexts:
    """All that the template shows; `key` holds place, width and shade of each step in percent."""

    sentence: str
    tokens: str
    lines: tuple[Line, ...]
    key: tuple[tuple[int, float, float, int], ...]
    kept: int
    blind: bool
    masked: bool
    numbers: bool
    controlled: bool
    beside: Beside | None


def read_dated(content: Content) -> DatedTexts | None:
    """Return two texts of a run with the dates of their tokens.

    None where the result holds no losses of tokens, no frequencies, or too few steps.
    """
    node = first_with(content, "token_loss", {"step", "text", "place"})
    if node is None or content.runs or "token_loss_frequencies" not in node.dataset:
        return None
    shown = ShownTokens.of(
        node, "token_id", "text_number", (node.dataset.sizes["text"], MOST_TOKENS)
    )
    if shown is None:
        return None
    return _read(content, shown)


def _read(content: Content, shown: ShownTokens) -> DatedTexts | None:
    data = shown.node.dataset
    width = shown.ids.shape[1]
    losses = shown.values("token_loss", "step")[..., :width]
    blind = _blind_guess(content)
    costs = np.minimum(shown.values("token_loss_frequencies")[..., :width], blind)
    predicted = np.isfinite(losses).any(axis=0) & np.isfinite(costs)
    pieces = Pieces.of(data)
    rows = chosen(pieces, shown.ids, predicted)
    steps = data["step"].values.astype(int)
    # The first weights predict nothing.
    used = content.based | (steps > 0)
    used &= np.isfinite(losses[:, rows][:, predicted[rows]]).all(axis=1)
    if not len(rows) or used.sum() <= LATER:
        return None
    # Held by the base, whether or not some later step does not.
    knows_base = content.based and bool(used[0]) and steps[0] == content.steps[0]
    by_base = knows_base & (losses[0, rows] <= costs[rows] - GAIN)
    reader = _Reader(
        content, shown, pieces, rows, predicted[rows], costs[rows], by_base
    )
    lines = reader.lines(steps[used], losses[used][:, rows])
    controls = reader.controls()
    masked = (
        bool(data["masked"].item())
        if "masked" in data and not data["masked"].ndim
        else False
    )
    in_controls = reader.in_controls()
    count = _count(lines)
    tokens = f"{content.voice.token_unit or 'token'}s"
    sentence = DATED.format(
        count=count,
        are="is" if count == 1 else "are",
        tokens=tokens,
        step=content.voice.unit,
        total=int(predicted[rows].sum()),
        last=step_text(steps[used][-1]),
        controls=f" (control runs {value_range(in_controls, '{:,.0f}'.format)})"
        if in_controls
        else "",
    )
    if knows_base:
        first = sum(d.by_base for d in _all(lines) if d.state == "good")
        gone = sum(d.state == "lost" for d in _all(lines))
        sentence += DATED_FROM_BASE.format(first=first, lost=gone)
    return DatedTexts(
        sentence=sentence,
        tokens=tokens,
        lines=lines,
        key=tuple(_key(content)),
        kept=len(shown.ids),
        blind=math.isfinite(blind),
        masked=masked,
        numbers=not pieces.by_id or pieces.numbers_only,
        controlled=bool(in_controls),
        beside=reader.beside(controls, steps, losses[:, rows]),
    )


def _blind_guess(content: Content) -> float:
    """Return the loss of a uniform guess; infinite where the result does not hold it.

    "ation" cost 10.06 nats by its frequency, and 6 at any step of a run that never learned it.
    """
    node = content.track_node
    blind = None if node is None else node.dataset.get("loss_uniform")
    return math.inf if blind is None or blind.size != 1 else float(blind)


@dataclass(frozen=True)
class _Reader:
    """The texts that were chosen, and how losses at some steps become lines."""

    content: Content
    shown: ShownTokens
    pieces: Pieces
    rows: np.ndarray
    predicted: np.ndarray
    costs: np.ndarray
    by_base: np.ndarray

    def lines(self, steps: np.ndarray, losses: np.ndarray) -> tuple[Line, ...]:
        """Return the lines with the dates of their tokens."""
        step, lasts = dates(
            steps, losses[:, self.predicted], self.costs[self.predicted]
        )
        since = np.full(self.predicted.shape, np.nan)
        good = np.zeros(self.predicted.shape, bool)
        since[self.predicted] = step
        good[self.predicted] = lasts
        return tuple(self._line(i, since[i], good[i]) for i in range(len(self.rows)))

    def _line(self, i: int, since: np.ndarray, good: np.ndarray) -> Line:
        row = self.rows[i]
        ids = self.shown.ids[row]
        number = self.shown.numbers[row]
        text = text_of(self.pieces, ids, self.predicted[i], f"text {number:,}")
        leads = self._leads()[row]
        base = self.by_base[i]
        places = np.flatnonzero(ids >= 0)
        tokens = tuple(
            self._token(token, since[k], bool(good[k]), bool(base[k]), bool(leads[k]))
            for token, k in zip(text.tokens, places, strict=True)
        )
        return Line(text, tokens)

    def _token(
        self, token: Token, since: float, good: bool, by_base: bool, leads: bool
    ) -> Dated:
        if not token.has_value:
            return Dated(token, "given")
        if not math.isfinite(since):
            state = "lost" if by_base else "never"
            return Dated(token, state, leads=leads, by_base=by_base)
        shade = int(_shades(self.content.steps, np.array([since]))[0])
        state = "good" if good else "late"
        return Dated(token, state, int(since), shade, leads, by_base)

    def _leads(self) -> np.ndarray:
        """Return which tokens are the first answer at the end, as far as that is known."""
        if "token_leads_from" not in self.shown.node.dataset:
            return np.zeros(self.shown.ids.shape, bool)
        return np.isfinite(self.shown.values("token_leads_from"))

    def in_controls(self) -> list[int]:
        """Return how many tokens each control run predicts at its last step.

        It is read at a few steps, so that "for good" has no meaning there, and no more are.
        """
        cost = self.costs[self.predicted] - GAIN
        losses = [values[read] for _, read, values in self._of_controls()]
        return [int((each[-1][self.predicted] <= cost).sum()) for each in losses]

    def controls(self) -> list[tuple[str, np.ndarray, tuple[Line, ...]]]:
        """Return name, steps and lines of each control run that was read often enough."""
        steps = self.shown.node.dataset["step"].values.astype(int)
        return [
            (name, read, self.lines(steps[read], losses[read]))
            for name, read, losses in self._of_controls()
            if read.sum() > LATER
        ]

    def _of_controls(self) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Give name, read steps and losses of each control run whose tokens were read."""
        data = self.shown.node.dataset
        name = "token_loss_control"
        if name not in data or "run" not in data[name].dims:
            return
        steps = data["step"].values.astype(int)
        every = self.shown.values(name, "run", "step")
        every = every[:, :, self.rows, : self.costs.shape[1]]
        for run, losses in zip(data["run"].values, every, strict=True):
            read = np.isfinite(losses[:, self.predicted]).all(axis=1) & (steps > 0)
            if read.any():
                yield plain_text(run), read, losses

    def beside(
        self, controls: Sequence[Any], steps: np.ndarray, losses: np.ndarray
    ) -> Beside | None:
        """Return the first control run and the run itself at its steps."""
        if not controls:
            return None
        name, read, lines = controls[0]
        own = self.lines(steps[read], losses[read])
        words = joined([step_text(step) for step in steps[read]])
        return Beside(
            words, ((f"control run {name}", lines), ("the run at these steps", own))
        )


def _all(lines: Sequence[Line]) -> Iterator[Dated]:
    for line in lines:
        yield from line.tokens


def _count(lines: Sequence[Line]) -> int:
    """Return how many tokens are predicted for good."""
    return sum(dated.state == "good" for dated in _all(lines))


def _scale(steps: Sequence[int]) -> StepScale:
    """Return the axis of the slider, as the page opens with it."""
    return StepScale(tuple(steps), "log")


def _shades(steps: Sequence[int], at: np.ndarray) -> np.ndarray:
    """Return the shade of each step: its place on the axis from the first step after 0."""
    scale = _scale(steps)
    first, last = scale.positions(
        [min((s for s in steps if s > 0), default=0), steps[-1]]
    )
    share = (scale.positions(at) - first) / ((last - first) or 1.0)
    return np.clip(np.floor(share * SHADES), 0, SHADES - 1).astype(int)


def _key(content: Content) -> Iterator[tuple[int, float, float, int]]:
    """Give each step that can be a date, with the place, width and shade of its cell."""
    steps = content.steps
    scale = _scale(steps)
    low, high = scale.span
    edges = 100 * (scale.edges(steps) - low) / (high - low)
    shades = _shades(steps, np.array(steps))
    for step, (left, right), shade in zip(steps, edges, shades, strict=True):
        if step > 0 or content.based:
            yield step, round(float(left), 2), round(float(right - left), 2), int(shade)
