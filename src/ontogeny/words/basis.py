"""What a page rests on: tests, what is open, the reference step, controls, and what failed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from ..claims import Certainty, Kind
from .catalogue.page import LOSS, UNSEEN
from .catalogue.sentences import REASONS
from .content import Content
from .controls import NONE_TRAINED, TRAINED_START, began_trained, made_of_motion
from .formats import joined, mid_sentence, plural
from .labels import said_once
from .rows import Row, counted_rows
from .sentences import OF_ROWS, standing_claims


def basis(content: Content) -> list[str]:
    """Return the sentences on how sure a page is."""
    return [
        *failed(content),
        *left_out(content),
        *_tests(content),
        *_open(content),
        *_reference(content),
        *_controls(content),
        *_uncounted(content),
        *content.notes,
    ]


def failed(content: Content) -> Iterator[str]:
    """Say how many observables are not counted, because nothing of them was measured."""
    lost = len(content.problems.lost)
    if lost:
        of = plural(len(content.problems.standings), "observable")
        yield f"{lost:,} of {of} failed and {'is' if lost == 1 else 'are'} not counted."


def left_out(content: Content) -> Iterator[str]:
    """Say what is not there, and why; the first screen says why there is no loss."""
    by_reason: dict[str, list[str]] = {}
    for kind, why in content.left_out.items():
        by_reason.setdefault(why, []).append(kind)
    for why, kinds in by_reason.items():
        because = f"because {why.rstrip('.')}"
        if LOSS in kinds:
            kinds.remove(LOSS)
            because = "as the loss is"
        if kinds:
            yield f"Left out: {', '.join(kinds)}, {because}."


def unseen_start(content: Content) -> str:
    """Say what a run without step 0 cannot show; empty where it has one."""
    first = content.steps[0] if content.steps else 0
    if not first or content.one_model or content.runs:
        return ""
    return UNSEEN.format(step=f"{content.unit} {first:,}")


def _tests(content: Content) -> Iterator[str]:
    """Say how many rows were tested, and at which levels."""
    tested = _tested(content)
    if not tested:
        return
    levels = content.levels
    every = sum(not row.runs for row in counted_rows(content.rows))
    some = "" if len(tested) == every else f"{len(tested):,} of "
    were = "was" if len(tested) == 1 else "were"
    words = f"{some}{plural(every, 'measure')} {were} tested"
    if math.isfinite(levels.change):
        words += f" against chance at α = {levels.change:g}"
        if math.isfinite(levels.control) and any(row.controls for row in tested):
            words += f" and against control runs at {levels.control:g}"
        over = "the page" if is_over_page(content) else "each section"
        if any(row.to_last for row in content.rows):
            over += " with its distances to the end"
        words += f", corrected by Holm’s method over {over}"
    yield f"{words}."


def _tested(content: Content) -> list[Row]:
    return [row for row in counted_rows(content.rows) if row.judgeable and not row.runs]


def is_over_page(content: Content) -> bool:
    """Return whether levels hold over the page; of earlier versions each section has its own."""
    return all(math.isfinite(row.p_uncorrected) for row in _tested(content))


def _open(content: Content) -> Iterator[str]:
    """Say how many rows are open, for each reason."""
    if content.runs:
        return
    standing = standing_claims(c for c in content.claims if c.kind in OF_ROWS)
    is_open = [
        c for c in standing if c.kind is Kind.CHANGED and c.certainty is Certainty.OPEN
    ]
    for reason, count in Counter(claim.reason for claim in is_open).items():
        if reason is not None:
            words = REASONS[reason].format(word=content.voice.word, needed="")
            yield f"{plural(count, 'measure')} {'is' if count == 1 else 'are'} open: {words}."


def _reference(content: Content) -> Iterator[str]:
    """Say which checkpoint distances are measured to."""
    step = content.reference_step
    to_others = [row for row in content.rows if not (row.own_value or row.to_last)]
    if step is None or not to_others:
        return
    place = {content.steps[-1]: "last ", content.steps[0]: "first "}.get(step, "")
    reference = f"the reference {content.voice.checkpoint}"
    yield f"Distances are measured to {reference}, the {place}checkpoint ({step:,})."


def _controls(content: Content) -> Iterator[str]:
    """Say what control runs can and cannot show."""
    if not content.controls:
        return
    if began_trained(node.dataset for node in content.nodes):
        yield TRAINED_START
    elif made_of_motion(content) and any(
        row.beyond and not row.learned for row in content.rows
    ):
        yield NONE_TRAINED
    without = sum(
        row.judgeable and not row.controlled for row in counted_rows(content.rows)
    )
    if without:
        verb = "was" if without == 1 else "were"
        yield f"{plural(without, 'measure')} {verb} not compared with control runs."


def _uncounted(content: Content) -> Iterator[str]:
    """Say what of the chart counts in no verdict, and why."""
    moving = [row for row in content.rows if row.role == "motion" and row.judgeable]
    distances = [row for row in content.rows if row.to_last]
    if moving:
        changed = f"{sum(row.changed for row in moving):,} of {plural(len(moving), 'measure')}"
        what = f"{_names(moving)} changed in {changed}"
        yield f"Not counted: {what}; that does not say what the model does."
    if distances:
        many = plural(len(distances), "distance")
        yield f"Not counted: {many} to the end ({_names(distances)}), 0 there by definition."


def _names(rows: Sequence[Row]) -> str:
    names = said_once([(row.quantity, row.kind) for row in rows])
    return joined(list(map(mid_sentence, names)))
