"""What the page's headline rests on: tests, levels, the reference step, controls, what failed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from .content import Content
from .controls import ADD_ONE, NONE_TRAINED, TRAINED_START, began_trained, explained, made_of_motion
from .formats import joined, mid_sentence, plural
from .labels import said_once
from .levels import Levels
from .reasons import UNJUDGED
from .rows import Row, counted_rows


def basis(
    content: Content, rows: Sequence[Row], fair: Sequence[Row], introduced: bool
) -> tuple[str, ...]:
    """Return the sentences that stand under the lead.

    `fair` are those of the rows that can be judged; `introduced` is whether it has been said before
    what control runs are.
    """
    return (
        *failed(content),
        *([" ".join(start)] if any(start := unseen_start(content)) and not introduced else []),
        *([*_tests(fair, content.levels), *unjudged(rows)] if fair else []),
        *_reference(content),
        *_controls(content, introduced),
        *_weight_change(content.rows),
    )


def failed(content: Content) -> list[str]:
    """Say how many observables are not counted, because nothing of them was measured."""
    lost, all_of_them = len(content.problems.lost), len(content.problems.standings)
    if not lost:
        return []
    verb = "is" if lost == 1 else "are"
    return [f"{lost:,} of {plural(all_of_them, 'observable')} failed and {verb} not counted."]


def unjudged(rows: Sequence[Row]) -> list[str]:
    """Say how many rows were not judged, for each reason."""
    counts = Counter(row.state.kind for row in rows)
    some = [(counts[state], why) for state, why in UNJUDGED.items() if counts[state]]
    return [f"{plural(n, 'row')} {'was' if n == 1 else 'were'} not judged: {w}." for n, w in some]


def _tests(fair: Sequence[Row], levels: Levels) -> list[str]:
    """Say how many rows were tested, and how many of them changed by their controls alone."""
    sections = len({row.section for row in fair})
    words = f"{plural(len(fair), 'row')} in {plural(sections, 'section')} were tested"
    words = "1 row was tested" if len(fair) == 1 else words
    whole = all(math.isfinite(row.p_uncorrected) for row in fair)
    over = "over the whole page" if whole else "within each section"
    if math.isnan(levels.change):
        return [f"{words}."]
    if all(row.p_value <= levels.change for row in fair if row.changed and not row.beyond):
        words += f" against chance at α = {levels.change:g}"
        if math.isfinite(levels.control) and any(row.controls for row in fair):
            words += f" and against control runs at {levels.control:g}"
        words += f", p corrected by Holm’s method {over}"
    alone = sum(row.beyond and not row.p_value <= levels.change for row in fair)
    if not alone:
        return [f"{words}."]
    if not any(row.controls for row in fair):
        return [f"{words}.", f"{alone:,} of them changed by renaming alone, not by its order."]
    rest = "by their difference from the control runs alone, not by their order in time"
    return [f"{words}.", f"{alone:,} of them changed {rest}."]


def unseen_start(content: Content) -> tuple[str, str]:
    """Say what a run without step 0 cannot show, in two parts; both empty where it has one."""
    first = content.steps[0] if content.steps else 0
    if not first or content.one_model or content.headline:
        return "", ""
    what = "what it learned before is not counted, and no birth or half-way {point} is earlier."
    return f"It is seen from {content.voice.unit} {first:,} on:", what


def _reference(content: Content) -> list[str]:
    """Say which checkpoint distances are measured to."""
    step = content.reference_step
    if step is None or all(row.own_value for row in content.rows):
        return []
    place = {content.steps[-1]: "last ", content.steps[0]: "first "}.get(step, "")
    return [
        f"Distances are measured to the reference {{checkpoint}}, the {place}checkpoint ({step:,})."
    ]


def _controls(content: Content, introduced: bool) -> list[str]:
    """Say what control runs are, and how many rows were not measured in them."""
    if not content.controls:
        return []
    count = len(content.controls)
    sentences = [f"There {'is' if count == 1 else 'are'} {plural(count, 'control run')}."]
    if not introduced:
        sentences.append(explained(content, "Control runs" if count > 1 else "Such runs"))
    if began_trained(node.dataset for node in content.nodes):
        sentences.append(TRAINED_START)
    elif made_of_motion(content) and any(row.beyond and not row.learned for row in content.rows):
        sentences += [NONE_TRAINED, ADD_ONE]
    without = sum(row.judgeable and not row.controlled for row in counted_rows(content.rows))
    if without:
        verb = "was" if without == 1 else "were"
        sentences.append(f"{plural(without, 'row')} {verb} not compared with them.")
    return sentences


def _weight_change(rows: Sequence[Row]) -> list[str]:
    moving = [row for row in rows if row.role == "motion" and row.judgeable]
    if not moving:
        return []
    changed = f"{sum(row.changed for row in moving):,} of {plural(len(moving), 'row')}"
    what = joined([mid_sentence(name) for name in said_once([row.quantity for row in moving])])
    why = "which says neither how far weights moved nor what the model does"
    return [f"Not counted: {what} changed in {changed}, {why}."]
