"""What failed, in words for the page: the panel that it opens with, and a note in each section."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..problems.problem import Problem, advice
from ..problems.table import steps_text
from ..words.catalogue.captions import CAPTIONS
from ..words.content import Content
from ..words.formats import plain_text, plural, step_text
from ..words.nodes import Node
from ..words.voice import Voice

_SHOWN = 6


@dataclass(frozen=True)
class Reason:
    """One reason in one observable: where, why, and what to do."""

    name: str
    where: str
    why: str
    advice: str
    section: str = ""


@dataclass(frozen=True)
class Failures:
    """The panel: its heading, what the numbers rest on, and the reasons; ``more`` are not shown."""

    heading: str
    lead: str
    reasons: tuple[Reason, ...]
    more: int


def read_failures(content: Content) -> Failures | None:
    """Return the panel, or None where nothing failed."""
    problems = content.problems
    if not problems:
        return None
    sections = {node.path: node for node in content.nodes}
    gone = set(problems.lost)
    first = sorted(
        problems, key=lambda problem: bool(problem.run) or problem.node not in gone
    )
    reasons = _one_of_each(
        [_reason(problem, sections, content.voice) for problem in first]
    )
    lost = len(gone)
    partly = len(set(problems.observables) - gone)
    whole = plural(len(problems.standings), "observable")
    if lost:
        heading = f"{lost:,} of {whole} failed"
        cells = f"{problems.failed:,} of {plural(problems.cells, 'cell')} failed. "
        lead = cells if problems.failed else ""
        if partly:
            others = plural(partly, "other")
            lead += CAPTIONS["others failed"].format(count=others)
        lead += "What this page counts and compares is what was measured."
    elif problems.failed:
        heading = f"{problems.failed:,} of {plural(problems.cells, 'cell')} failed"
        lead = "The figures have gaps there. Everything else was measured."
    elif problems.observables:
        some = f"{len(problems.observables):,}"
        heading = CAPTIONS["unsummarised"].format(some=some, all=whole)
        lead = "Their cells were measured and are in the result."
    else:
        heading = "Something failed in control runs"
        lead = "The run itself was measured whole; it is compared with what is left of them."
    return Failures(heading, lead, reasons[:_SHOWN], max(0, len(reasons) - _SHOWN))


def section_failures(content: Content, node: Node) -> list[Reason]:
    """Return what failed in the section of a node."""
    problems = [p for p in content.problems if p.node == node.path and not p.run]
    return list(
        _one_of_each(
            [_reason(problem, {node.path: node}, content.voice) for problem in problems]
        )
    )


def old_reference(content: Content) -> str:
    """Return that the reference is no longer the first or last step; empty if it is."""
    reference = content.settings.get("reference")
    step = content.settings.get("reference_step")
    now = {"first": content.steps[0], "last": content.steps[-1]}.get(str(reference))
    if now is None or not isinstance(step, int) or step == now:
        return ""
    voice = content.voice
    return CAPTIONS["reference"].format(
        then=f"{voice.unit} {step_text(step)}",
        now=f"{voice.unit} {step_text(now)}",
        end=reference,
        checkpoint=voice.checkpoint,
    )


def _reason(problem: Problem, sections: Mapping[str, Node], voice: Voice) -> Reason:
    node = sections.get(problem.node)
    name = node.title if node is not None else problem.node
    if problem.run:
        name = CAPTIONS["in control run"].format(name=name, run=problem.run)
    unit = f"{voice.unit}s" if len(problem.steps) > 1 else voice.unit
    steps = f"{unit} {steps_text(problem.steps)}"
    layers = problem.layers
    names = ", ".join(layers[:2]) + (
        f" and {len(layers) - 2} more" if len(layers) > 2 else ""
    )
    where = ", ".join(filter(None, [steps if problem.steps else "", names]))
    section = node.id if node is not None else ""
    why = plain_text(problem.reason)
    return Reason(
        plain_text(name), plain_text(where), why, advice(problem.why), section
    )


def _one_of_each(reasons: list[Reason]) -> tuple[Reason, ...]:
    """Return the first of the reasons that say the same of the same observable."""
    return tuple({(r.name, r.where, r.why): r for r in reversed(reasons)}.values())[
        ::-1
    ]
