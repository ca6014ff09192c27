"""The first screen in words: a heading, a few sentences, and a few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...claims import Kind
from ...words.basis import unseen_start
from ...words.catalogue.page import LOSS
from ...words.content import Content
from ...words.landmarks import LossCurve, read_loss
from ...words.runs import heading_of_runs, sentences_of_runs, sentences_of_shared
from ...words.sentences import OF_ROWS
from ...words.statements import Said
from ...words.story import Line, Story, line_of
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
    ends: list[Line] = []  # lines that no others push away
    if content.runs:
        heading = heading_of_runs(content)
        lines = _of_runs(content, heading)
    else:
        heading = story.heading
        lines = story.lines()
        if (start := unseen_start(content)) and not content.based:
            lines.append(Line(start, link="#verdict", note=True))
        if (line := appeared(content, concepts)) is not None:
            if not found:
                heading = Said(line.lead.rstrip(".:"))
                line = replace(line, said=heading)
            is_zero = concepts is not None and concepts.is_zero
            if concepts is not None and not is_zero:
                ends.append(line)
            elif not (is_zero and lines):  # the section tells a zero
                lines.append(line)
    if (controls := story.of_controls()) is not None:
        ends.append(controls)
    lines = [*lines[: MOST - len(ends)], *ends]
    return FirstScreen(
        heading.text,
        tuple(line for line in lines if line.text or not _is_told(line, heading)),
        numbers_of(content, loss, concepts, running),
        loss,
        concepts,
        _link(content, heading, lines),
    )


def _of_runs(content: Content, heading: Said) -> list[Line]:
    """Return what several runs show together: of the loss, what they share, and the rest."""
    of_loss: list[Said] = []
    others: list[Said] = []
    for node in content.nodes:
        found = [one for one in sentences_of_runs(content, node.path) if _is_found(one)]
        kin = of_loss if node.role == "track" else others
        kin += found[:1]
    shared = [one for one in sentences_of_shared(content) if one.is_sure]
    told = (*of_loss, *shared[:1], *others)
    lines = [line_of(content, one, heading) for one in told]
    return [line for line in lines if line is not None]


def _is_found(one: Said) -> bool:
    """Return whether a sentence says what happened, and not that it is open."""
    return one.claims[0].kind is not Kind.CHANGED or one.claims[0].reason is None


def _is_told(line: Line, heading: Said) -> bool:
    """Return whether the heading says all that a line begins with."""
    return line.said is not None and heading.covers(line.said)


def _link(content: Content, heading: Said, lines: Sequence[Line]) -> str:
    """Return the place that shows what the heading says, else that of the first line."""
    if len(heading.claims) > 1 and {c.kind for c in heading.claims} <= {*OF_ROWS}:
        return "#chart"
    if heading.claims:
        return content.link(heading.claims[0])
    told = [line for line in lines if _is_told(line, heading)]
    return next((line.link for line in (*told, *lines) if line.link), "")
