"""The first screen in words: a heading, a few sentences, and a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

from ...claims import Kind
from ...words.basis import unseen_start
from ...words.catalogue import LOSS
from ...words.content import Content
from ...words.headings import Heading, Headings
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
    story = Story(content)
    heading = heading_of_runs(content) if content.runs else Headings(content).heading()
    lines = _of_runs(content) if content.runs else story.lines()
    links = [line.link for line in lines if heading.tells(line.claims)]
    lines = [*story.under(heading, lines)]
    ends: list[Line] = []  # lines that no others push away
    if not content.runs:
        if (start := unseen_start(content)) and not content.based:
            lines.append(Line(start, link="#verdict"))
        if (line := appeared(content, concepts)) is not None:
            told = [line]
            if not found:
                heading, told = Heading(line.lead.rstrip(".:")), line.without_lead()
                links = [line.link]
            if concepts is not None and not concepts.is_zero:
                ends += told
            elif concepts is None or not lines:  # the section tells a zero
                lines += told
    if (controls := story.of_controls()) is not None:
        ends.append(controls)
    lines = [*lines[: MOST - len(ends)], *ends]
    link = next(filter(None, [*links, *(line.link for line in lines)]), "")
    numbers = numbers_of(content, loss, concepts, running)
    return FirstScreen(heading.text, tuple(lines), numbers, loss, concepts, link)


def _of_runs(content: Content) -> list[Line]:
    """Return what several runs show together, that of the loss first."""
    story = Story(content)
    lines: list[Line] = []
    for node in sorted(content.nodes, key=lambda node: node.role != "track"):
        told = [one for one in sentences_of_runs(content, node.path) if _is_found(one)]
        lines += map(story.line, told[:1])
    return lines


def _is_found(one: Said) -> bool:
    """Return whether a sentence says what happened, and not that it is open."""
    return one.claims[0].kind is not Kind.CHANGED or one.claims[0].reason is None
