"""The first screen in words: a heading, a few sentences, and a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

from ...claims import Kind
from ...words.basis import unseen_start
from ...words.catalogue import LOSS
from ...words.content import Content
from ...words.headings import Headings
from ...words.landmarks import LossCurve, read_loss
from ...words.runs import heading_of_runs, sentences_of_runs
from ...words.sentences import Said
from ...words.story import Line, Story
from ..concepts.appeared import appeared
from ..concepts.lives import Concepts
from ..concepts.nodes import read_concepts
from .numbers import Figure, numbers_of

MOST = 6  # sentences


@dataclass(frozen=True)
class FirstScreen:
    """All that the first screen says, and the parts that it draws.

    ``link`` is the place of the page that shows what the heading says, as far as a line says so.
    """

    heading: str
    sentences: tuple[Line, ...]
    numbers: tuple[Figure, ...]
    loss: LossCurve | None
    concepts: Concepts | None
    link: str = ""

    @property
    def is_drawn(self) -> bool:
        """Whether there is anything to draw beside the words."""
        return self.loss is not None or self.concepts is not None


def first_screen(content: Content, running: bool = False) -> FirstScreen | None:
    """Return the first screen; none of a result without a claim and without a concept.

    `running` says that the run was still training.
    """
    concepts = None if content.runs else read_concepts(content)
    found = [claim for claim in content.claims if claim.kind is not Kind.MEASURED]
    if not found and concepts is None and LOSS not in content.left_out:
        return None
    loss = read_loss(content)
    ends: list[Line] = []  # lines that no others push away
    if content.runs:
        heading = heading_of_runs(content)
        lines = _of_runs(content)
    else:
        story = Story(content)
        heading = Headings(content).heading()
        lines = story.lines()
        if (start := unseen_start(content)) and not content.based:
            lines.append(Line(start, link="#verdict"))
        if (line := appeared(content, concepts)) is not None:
            is_zero = concepts is not None and concepts.is_zero
            if concepts is not None and not is_zero:
                ends.append(line)
            elif not (is_zero and lines):  # the section tells a zero
                lines.append(line)
            heading = heading if found else line.lead.rstrip(".:")
    if (controls := Story(content).of_controls()) is not None:
        ends.append(controls)
    lines = [*lines[: MOST - len(ends)], *ends]
    numbers = numbers_of(content, loss, concepts, running)
    told = tuple(_once(heading, lines))
    return FirstScreen(heading, told, numbers, loss, concepts, _link_of(heading, lines))


def _of_runs(content: Content) -> list[Line]:
    """Return what several runs show together, that of the loss first."""
    nodes = sorted(content.nodes, key=lambda node: node.role != "track")
    lines: list[Line] = []
    for node in nodes:
        told = [one for one in sentences_of_runs(content, node.path) if _is_found(one)]
        lines += [
            Line(one.lead, one.rest, content.link(one.claims[0])) for one in told[:1]
        ]
    return lines


def _is_found(one: Said) -> bool:
    """Return whether a sentence says what happened, and not that it is open."""
    return one.claims[0].kind is not Kind.CHANGED or one.claims[0].reason is None


def _link_of(heading: str, lines: list[Line]) -> str:
    """Return the link of the line that says what the heading says, else of the first line."""
    same = [line for line in lines if line.lead.rstrip(".:") == heading]
    return next((line.link for line in (*same, *lines) if line.link), "")


def _once(heading: str, lines: list[Line]) -> list[Line]:
    """Return lines without one that says what the heading says, and no more."""
    return [line for line in lines if line.text or line.lead.rstrip(".") != heading]
