"""Dated texts: from which step on runs predict each token of two texts for good."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ...words.catalogue.page import (
    DATED,
    DATED_AS_CONTROLS,
    DATED_BESIDE,
    DATED_CONTROLS,
    DATED_FOR,
    DATED_FROM_BASE,
    DATED_OF,
    DATED_RUN,
    DATED_RUNS,
)
from ...words.content import Content
from ...words.formats import joined, plain_text, step_text, value_range
from ...words.nodes import Node
from ..concepts.lives import Concepts
from .concept_rows import ConceptRow, concept_rows
from .dated_lines import Line, TokenDates, blind_guess, count_of
from .dates import LATER, TEXTS
from .step_shades import step_key
from .tokens import first_with

MOST_RUNS = 6  # of which lines are shown
FEW_RUNS = 2
LEVEL = 0.05


@dataclass(frozen=True)
class Beside:
    """A text under a control run and under the run, both at the `steps` of the control."""

    steps: str
    lines: tuple[tuple[str, tuple[Line, ...]], ...]


@dataclass(frozen=True)
class DatedTexts:
    """All that the template shows; `key` holds place, width and shade of each step in percent.

    Of several runs each text has a line for each of them; ``apart`` are those that were measured
    on other texts or at too few steps, and those beyond `MOST_RUNS`. ``sure`` says whether a run
    predicts more tokens than its control runs, beyond chance, where it has any.
    """

    sentence: str
    last: int
    tokens: str
    lines: tuple[Line, ...]
    key: tuple[tuple[int, float, float, int], ...]
    kept: int
    blind: bool
    masked: bool
    numbers: bool
    controlled: bool
    beside: Beside | None = None
    concepts: tuple[ConceptRow, ...] = ()
    apart: tuple[str, ...] = ()
    sure: bool = True
    dated: bool = True

    @property
    def texts(self) -> int:
        """How many texts there are."""
        return len({line.text.name for line in self.lines})


def read_dated(content: Content, concepts: Concepts | None = None) -> DatedTexts | None:
    """Return two texts with the dates of their tokens; of many runs, one text.

    `concepts` are those whose births stand below. None where the result holds no losses of tokens,
    no frequencies, or too few steps.
    """
    if content.runs:
        return _of_runs(content)
    node = first_with(content, "token_loss", {"step", "text", "place"})
    if node is None:
        return None
    read = TokenDates.of(content, node, blind_guess(content))
    if read is None or not read.has_dates:
        return None
    lines = read.lines()
    in_controls = read.in_controls()
    count = count_of(lines)
    tokens = _tokens(content)
    sentence = DATED.format(
        count=count,
        are="is" if count == 1 else "are",
        tokens=tokens,
        step=content.voice.unit,
        total=read.total,
        last=step_text(read.last),
        controls=_controls_words(count, in_controls),
    )
    if read.knows_base:
        every = [token for line in lines for token in line.tokens]
        first = sum(token.by_base for token in every if token.state == "good")
        lost = count_of(lines, "lost")
        sentence += DATED_FROM_BASE.format(first=first, lost=lost)
    return DatedTexts(
        sentence=sentence,
        last=read.last,
        tokens=tokens,
        lines=lines,
        key=tuple(step_key(content)),
        kept=len(read.shown.ids),
        blind=math.isfinite(read.blind),
        masked=read.masked,
        numbers=not read.pieces.by_id or read.pieces.numbers_only,
        controlled=bool(in_controls),
        beside=_beside(read),
        sure=_surpasses(count, in_controls),
        concepts=concept_rows(concepts, read),
    )


def _of_runs(content: Content) -> DatedTexts | None:
    """Return two texts of two runs, else one, with a line for each run measured on it."""
    node = first_with(content, "token_loss", {"run", "step", "text", "place"})
    if node is None:
        return None
    texts = TEXTS if len(content.runs) == FEW_RUNS else 1
    labels = list(map(str, node.dataset["run"].values))
    read: dict[str, TokenDates] = {}
    for label in labels[:MOST_RUNS]:
        blind = blind_guess(content, label)
        one = TokenDates.of(content, _of_run(node, label), blind, texts)
        if one and one.has_dates and all(map(one.same_texts, read.values())):
            read[label] = one
    # What a longer run does later is no part of the comparison.
    last = min((one.last for one in read.values()), default=0)
    read = {label: replace(one, until=last) for label, one in read.items()}
    read = {label: one for label, one in read.items() if one.has_dates}
    if len(read) < FEW_RUNS:
        return None
    names = {label: plain_text(label) for label in labels}
    lines = {label: one.lines(names[label]) for label, one in read.items()}
    in_controls = {label: one.in_controls() for label, one in read.items()}
    count = {label: count_of(lines[label]) for label in read}
    counts = [DATED_RUN.format(run=names[label], count=count[label]) for label in read]
    unsure = [
        label for label in read if not _surpasses(count[label], in_controls[label])
    ]
    controlled = [label for label in read if in_controls[label]]
    first = next(iter(read.values()))
    tokens = _tokens(content)
    return DatedTexts(
        sentence=DATED_RUNS.format(
            total=first.total,
            tokens=tokens,
            step=content.voice.unit,
            last=step_text(last),
            counts=joined(counts),
            controls=_beside_controls(
                list(chain(*in_controls.values())),
                not unsure,
                _some(DATED_OF, controlled, names, read),
                _some(DATED_FOR, unsure, names, read),
            ),
        ),
        last=last,
        tokens=tokens,
        lines=tuple(line for row in zip(*lines.values(), strict=True) for line in row),
        key=tuple(step_key(content)),
        kept=len(first.shown.ids),
        blind=all(math.isfinite(one.blind) for one in read.values()),
        masked=first.masked,
        numbers=not first.pieces.by_id or first.pieces.numbers_only,
        controlled=any(in_controls.values()),
        apart=tuple(names[label] for label in labels if label not in read),
        sure=not unsure,
    )


def _of_run(node: Node, run: str) -> Node:
    """Return a node of one run, whose controls lie along ``run`` as in a study of its own."""
    data = node.dataset.sel(run=run, drop=True)
    if "control" in data.dims:
        data = data.rename(control="run")
    return replace(node, dataset=data)


def _tokens(content: Content) -> str:
    return f"{content.voice.token}s"


def _controls_words(count: int, in_controls: Sequence[int]) -> str:
    """Return how many tokens control runs predict beside `count` of the run; empty without any."""
    return _beside_controls(in_controls, _surpasses(count, in_controls))


def _beside_controls(
    in_controls: Sequence[int], surpasses: bool, of: str = "", unsure: str = ""
) -> str:
    """Return how many tokens control runs predict, `of` which runs; which are `unsure`, if any."""
    if not in_controls:
        return ""
    words = DATED_CONTROLS if surpasses else DATED_AS_CONTROLS
    counts = value_range(in_controls, "{:,.0f}".format)
    return words.format_map({"counts": counts, "of": of, "for": unsure})


def _some(
    words: str, some: Sequence[str], names: Mapping[str, str], every: Collection[str]
) -> str:
    """Return words on some of the runs; nothing where they are all."""
    if len(some) == len(every):
        return ""
    return words.format(runs=joined([names[label] for label in some]))


def _surpasses(count: int, in_controls: Sequence[int]) -> bool:
    """Return whether a count is beyond those of control runs by more than chance gives.

    A random walk predicts six tokens where its own control runs predict one to four. So of all
    tokens that the run or the most able control run predicts, the run must have more than fair
    coins would give it.
    """
    if not in_controls:
        return True
    every = count + max(in_controls)
    at_least = sum(math.comb(every, k) for k in range(count, every + 1))
    return at_least <= LEVEL * 2**every


def _beside(read: TokenDates) -> Beside | None:
    """Return a text of the first control run read often enough, and of the run at its steps."""
    names = map(read.content.voice.fill, DATED_BESIDE)
    for _, at, losses in read.controls():
        if at.sum() > LATER:
            words = joined([step_text(step) for step in read.steps[at]])
            lines = (read.at(at, losses, own=False), read.at(at, read.losses))
            of_each = (
                (name, some[:1]) for name, some in zip(names, lines, strict=True)
            )
            return Beside(words, tuple(of_each))
    return None
