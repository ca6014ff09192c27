"""The tokens of a run's texts with their dates: since when each is predicted for good."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...words.content import Content
from ...words.formats import plain_text
from ...words.nodes import Node
from ..concepts.tokens import Pieces
from .dates import GAIN, LATER, TEXTS, chosen, dates
from .example import MOST_TOKENS, Text, Token, text_of
from .step_shades import shades
from .tokens import ShownTokens


@dataclass(frozen=True)
class Dated:
    """A token and its date; `state` is given, never, lost, late or good, `shade` that of its step.

    ``by_base`` is whether the base that was tuned predicts it. Of one model, which has no dates,
    `shade` is by how many nats it is likelier than by ``cost``, which goes with its ``loss``.
    """

    token: Token
    state: str
    step: int | None = None
    shade: int = 0
    leads: bool = False
    by_base: bool = False
    loss: float = math.nan
    cost: float = math.nan


@dataclass(frozen=True)
class Line:
    """One text with its dates, and the run that it is of where there are several."""

    text: Text
    tokens: tuple[Dated, ...]
    of: str = ""


@dataclass(frozen=True, eq=False)
class TokenDates:
    """The losses of one run on its texts, and how some of them become lines.

    Attributes
    ----------
    shown
        The texts of a node of one run, whose dimension of runs is that of its controls.
    blind
        Loss of a uniform guess; infinite where the result does not hold it. "ation" cost 10.06 nats
        by its frequency, and 6 at any step of a run that never learned it.
    texts
        How many texts are shown.
    until
        The last step that may count.
    """

    content: Content
    shown: ShownTokens
    blind: float
    texts: int = TEXTS
    until: float = math.inf

    @classmethod
    def of(
        cls, content: Content, node: Node, blind: float, texts: int = TEXTS
    ) -> TokenDates | None:
        """Return the dates of a node, None where it holds no losses, frequencies or tokens."""
        data = node.dataset
        if not {"token_loss", "token_loss_frequencies"} <= set(data.data_vars):
            return None
        most = (data.sizes["text"], MOST_TOKENS)
        shown = ShownTokens.of(node, "token_id", "text_number", most)
        return None if shown is None else cls(content, shown, blind, texts)

    @cached_property
    def pieces(self) -> Pieces:
        """How tokens are written."""
        return Pieces.of(self.shown.node.dataset)

    @cached_property
    def steps(self) -> np.ndarray:
        """(T,) steps of the losses."""
        return self.shown.node.dataset["step"].values.astype(int)

    @cached_property
    def losses(self) -> np.ndarray:
        """(T, k, w) losses in nats."""
        values = self.shown.values("token_loss", "step")
        return values[..., : self.shown.ids.shape[1]]

    @cached_property
    def costs(self) -> np.ndarray:
        """(k, w) what tokens cost by their frequencies, and by a uniform guess at most."""
        costs = self.shown.values("token_loss_frequencies")
        return np.minimum(costs[..., : self.shown.ids.shape[1]], self.blind)

    @cached_property
    def predicted(self) -> np.ndarray:
        """(k, w) which tokens are predicted."""
        return np.isfinite(self.losses).any(axis=0) & np.isfinite(self.costs)

    @cached_property
    def rows(self) -> np.ndarray:
        """The texts that are shown."""
        return chosen(self.pieces, self.shown.ids, self.predicted, self.texts)

    @cached_property
    def used(self) -> np.ndarray:
        """(T,) the steps that can be dates: the first weights predict nothing."""
        there = self.losses[:, self.rows][:, self.predicted[self.rows]]
        counts = self.content.based | (self.steps > 0)
        counts &= self.steps <= self.until
        return np.asarray(counts & np.isfinite(there).all(axis=1))

    @property
    def has_dates(self) -> bool:
        """Whether there is a text, and steps enough for a date."""
        return len(self.rows) > 0 and int(self.used.sum()) > LATER

    @property
    def last(self) -> int:
        """The last step that counts."""
        return int(self.steps[self.used][-1])

    @property
    def total(self) -> int:
        """How many tokens of the texts are predicted."""
        return int(self.predicted[self.rows].sum())

    @cached_property
    def by_base(self) -> np.ndarray:
        """(k, w) what the base predicts, whether or not some later step does not."""
        knows = self.knows_base
        return np.asarray(knows & (self.losses[0] <= self.costs - GAIN))

    @property
    def knows_base(self) -> bool:
        """Whether the base was measured."""
        is_first = self.steps[0] == self.content.steps[0]
        return bool(self.content.based and self.used[0] and is_first)

    @property
    def masked(self) -> bool:
        """Whether each token was masked in a pass of its own."""
        data = self.shown.node.dataset
        return (
            "masked" in data and not data["masked"].ndim and bool(data["masked"].item())
        )

    def same_texts(self, other: TokenDates) -> bool:
        """Return whether the texts shown of both runs are the same, token by token."""
        rows = other.rows
        return (
            self.shown.ids.shape == other.shown.ids.shape
            and np.array_equal(self.rows, rows)
            and np.array_equal(self.shown.ids[rows], other.shown.ids[rows])
            and np.array_equal(self.predicted[rows], other.predicted[rows])
        )

    def lines(self, of: str = "") -> tuple[Line, ...]:
        """Return the texts with the dates of their tokens, as lines of the run `of`."""
        own = self.at(self.used, self.losses)
        return tuple(replace(line, of=of) for line in own)

    def at(
        self, read: np.ndarray, losses: np.ndarray, own: bool = True
    ) -> tuple[Line, ...]:
        """Return the lines by losses (T, k, w) at the steps (T,) that were read.

        Those of a control run are not its `own`: which first answers it gives is not known.
        """
        since, lasts = self.dates(read, losses)
        leads = self._leads & own
        return tuple(
            self._line(row, since[row], lasts[row], leads[row]) for row in self.rows
        )

    def dates(
        self, read: np.ndarray, losses: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (k, w) since when tokens are predicted, NaN where not, and which for good."""
        there = np.zeros(self.predicted.shape, dtype=bool)
        there[self.rows] = self.predicted[self.rows]
        since = np.full(there.shape, np.nan)
        good = np.zeros(there.shape, dtype=bool)
        since[there], good[there] = dates(
            self.steps[read], losses[read][:, there], self.costs[there]
        )
        return since, good

    def _line(
        self, row: int, since: np.ndarray, good: np.ndarray, leads: np.ndarray
    ) -> Line:
        ids = self.shown.ids[row]
        name = f"text {self.shown.numbers[row]:,}"
        text = text_of(self.pieces, ids, self.predicted[row], name)
        base = self.by_base[row]
        tokens = tuple(
            self._token(token, since[k], bool(good[k]), bool(base[k]), bool(leads[k]))
            for token, k in zip(text.tokens, np.flatnonzero(ids >= 0), strict=True)
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
        (shade,) = shades(self.content.steps, [since])
        state = "good" if good else "late"
        return Dated(token, state, int(since), shade, leads, by_base)

    @cached_property
    def _leads(self) -> np.ndarray:
        """Which tokens are the first answer at the end, as far as that is known."""
        if "token_leads_from" not in self.shown.node.dataset:
            return np.zeros(self.shown.ids.shape, bool)
        return np.isfinite(self.shown.values("token_leads_from"))

    def in_controls(self) -> list[int]:
        """Return how many tokens each control run predicts at the last of its steps that counts.

        It is read at a few steps, so that "for good" has no meaning there, and no more are.
        """
        there = self.predicted[self.rows]
        most = self.costs[self.rows][there] - GAIN
        return [
            int((losses[read][-1, self.rows][there] <= most).sum())
            for _, read, losses in self.controls()
        ]

    def controls(self) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Give name, read steps and losses of each control run whose tokens were read."""
        data = self.shown.node.dataset
        name = "token_loss_control"
        if name not in data or "run" not in data[name].dims:
            return
        every = self.shown.values(name, "run", "step")
        every = every[..., : self.shown.ids.shape[1]]
        there = self.predicted[self.rows]
        for run, losses in zip(data["run"].values, every, strict=True):
            read = np.isfinite(losses[:, self.rows][:, there]).all(axis=1)
            read &= (self.steps > 0) & (self.steps <= self.until)
            if read.any():
                yield plain_text(run), read, losses


def count_of(lines: Sequence[Line], state: str = "good") -> int:
    """Return how many tokens of some lines are in a state."""
    return sum(dated.state == state for line in lines for dated in line.tokens)


def blind_guess(content: Content, run: str = "") -> float:
    """Return the loss of a uniform guess; infinite where the result does not hold it."""
    node = content.track_node
    blind = None if node is None else node.dataset.get("loss_uniform")
    if blind is not None and run and "run" in blind.dims:
        blind = blind.sel(run=run)
    return math.inf if blind is None or blind.size != 1 else float(blind)
