"""The page's headline: what was learned, what changed beyond its motion, and what was not judged.

A row counts as changed where it is more than noise and chance. Only control runs, which move as
far and learn nothing, can tell that it is more than motion, and only performance on held-out texts
can be learned. Without controls the page says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .content import Content
from .formats import plural, step_text
from .row_words import (
    control_ends,
    control_half_words,
    controls_went_along,
    direction,
    half_words,
    values_words,
)
from .rows import Row, judged
from .sentences import CLAIMED_LEAD, claims_sentence, mid_sentence, sentence_start
from .timing import order_sentence, ordered_rows, owner

MIN_STEPS = 6
"""Fewer steps cannot tell a trend from chance: no order of them is rare enough."""

ALPHA = 0.01
"""Level of the tests; p-values come corrected by Holm's method."""

UNCONTROLLED = "A run that moved as far and learned nothing may look the same."


@dataclass(frozen=True)
class Verdict:
    """The overview: a heading, what matters most, what it rests on, and the numbers of rows.

    ``named`` holds the rows that the lead names, ``direction`` where the first of them goes.
    """

    heading: str
    lead: str
    details: tuple[str, ...]
    learned: int
    beyond: int
    changed: int
    judged: int
    named: tuple[Row, ...] = ()

    @property
    def direction(self) -> str:
        """Where the first row that is named goes."""
        return direction(self.named[0]) if self.named else ""


def verdict(content: Content) -> Verdict:
    """Say what was learned and what changed, from what to what, and how sure that is."""
    if content.headline:  # a comparison of runs says itself what they show together
        return _own(content.headline)
    rows = judged(content.rows)
    enough = len(content.steps) >= MIN_STEPS
    fair = [row for row in rows if row.judgeable and enough]
    heading, lead, named = _headline(content, rows, fair)
    return Verdict(
        heading,
        lead,
        (
            *_failed(content),
            *_basis(rows, fair),
            *_controls(content),
            *_weight_change(content.rows),
        ),
        learned=sum(row.learned for row in fair),
        beyond=sum(row.beyond or row.learned for row in fair),
        changed=sum(row.changed for row in fair),
        judged=len(rows),
        named=tuple(named),
    )


def _own(headline: Mapping[str, Any]) -> Verdict:
    """Return the verdict that a result brings along."""
    names = ("learned", "beyond", "changed", "judged")
    learned, beyond, changed, judged_rows = (int(headline.get(name) or 0) for name in names)
    return Verdict(
        str(headline.get("heading") or ""),
        str(headline.get("lead") or ""),
        tuple(map(str, headline.get("details") or ())),
        learned=learned,
        beyond=beyond,
        changed=changed,
        judged=judged_rows,
    )


def _headline(
    content: Content, rows: Sequence[Row], fair: Sequence[Row]
) -> tuple[str, str, Sequence[Row]]:
    """Return heading, lead and the rows that the lead names."""
    if claims := [node for node in content.nodes if node.role == "claims"]:
        return ", ".join(claims_sentence(node) for node in claims), CLAIMED_LEAD, ()
    if len(content.steps) < MIN_STEPS or (rows and not fair):
        return (*_nothing_judged(content, rows), ())
    if not rows:
        lead = "No observable of this study has rows that are tested against chance and noise."
        return "Nothing was tested", lead, ()
    controlled = [row for row in fair if row.controlled]
    if controlled:
        return _against_controls(rows, controlled, whole=not content.problems.lost)
    changed = [row for row in fair if row.changed]
    if not changed:
        return "No change above chance and noise", _nothing(fair), ()
    few = any(row.controls for row in fair)
    why = "too few control runs to compare with" if few else "no control was run"
    whole = not content.problems.lost
    heading = f"{_counted(changed, fair, whole=whole)} changed; {why}"
    return (
        heading,
        _sentences(UNCONTROLLED, order_sentence(fair), _settled(changed)),
        ordered_rows(fair),
    )


def _against_controls(
    rows: Sequence[Row], controlled: Sequence[Row], *, whole: bool
) -> tuple[str, str, Sequence[Row]]:
    """Return the headline of a study with control runs; `whole` if no observable failed."""
    learned = [row for row in controlled if row.learned]
    able = [row for row in controlled if row.can_learn]
    if learned:
        others = [row for row in controlled if not row.learned]
        heading = "; ".join(filter(None, [_learned_words(learned), _further(others, whole=whole)]))
        shown = _first_of_each(learned)[:2]
        lead = [*map(_course, shown), _settled(learned), order_sentence(controlled)]
        return heading, _sentences(*lead), (*shown, *ordered_rows(controlled))
    if able:
        shown = _first_of_each(able)[:2]
        lead = [*map(_course, shown), _beyond_sentence(controlled)]
        return "Nothing here was learned", _sentences(*lead), shown
    short = any(row.can_learn for row in rows)
    opening = "Learning could not be judged" if short else "Learning was not measured here"
    beyond = sum(row.beyond for row in controlled)
    ends = f"{beyond:,} of {_quantities(len(controlled))} changed beyond {_its(beyond)} motion"
    return f"{opening}: {ends}", order_sentence(controlled), ordered_rows(controlled)


def _learned_words(learned: Sequence[Row]) -> str:
    """Return what was learned, by name where there are at most two quantities."""
    names = list(dict.fromkeys(row.quantity for row in learned))
    if len(names) > 2:
        return f"{len(learned):,} quantities were learned"
    if len(names) == 2:
        return f"{sentence_start(names[0])} and {mid_sentence(names[1])} were learned"
    where = f" in {plural(len(learned), 'layer')}" if len(learned) > 1 else ""
    return f"{sentence_start(names[0])} was learned{where}"


def _further(others: Sequence[Row], *, whole: bool) -> str:
    """Return how many of the other rows changed beyond their motion."""
    if not others:
        return ""
    beyond = sum(row.beyond for row in others)
    if len(others) == 1:
        return f"{beyond} of 1 further quantity changed beyond its motion"
    many = "all" if beyond == len(others) and whole else "none" if not beyond else f"{beyond:,}"
    return f"{many} of {len(others):,} further quantities changed beyond {_its(beyond)} motion"


def _beyond_sentence(rows: Sequence[Row]) -> str:
    """Say how many rows changed, and how many of them by more than controls."""
    changed, beyond = (sum(getattr(row, name) for row in rows) for name in ("changed", "beyond"))
    words = f"{changed:,} of {_quantities(len(rows))} changed"
    if not changed or beyond == changed:
        return f"{words}{f', beyond {_its(beyond)} motion' if changed else ''}."
    some = f"{beyond:,}" if beyond else "none"
    return f"{words}, {some} of them beyond {_its(beyond)} motion."


def _its(count: int) -> str:
    return "their" if count > 1 else "its"


def _quantities(count: int) -> str:
    return f"{count:,} {'quantity' if count == 1 else 'quantities'}"


def _first_of_each(rows: Sequence[Row]) -> list[Row]:
    """Return the first row of every quantity."""
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        found.setdefault((row.section, row.quantity), row)
    return list(found.values())


def _course(row: Row) -> str:
    """Say from what to what a row went, what controls did, and when half of that was over."""
    verb = {"falls": "fell", "rises": "rose"}.get(direction(row), "")
    ends = values_words(row.first_value, row.last_value)
    if not verb or not ends:
        return ""
    verb = verb if row.changed else "went"
    words = " ".join(filter(None, [f"{sentence_start(owner(row))} {verb} from {ends}", row.units]))
    if not row.changed:
        words += ", no more than chance and noise would give"
    if controls := values_words(*control_ends(row)):
        average = " on average" if len(row.controls) > 1 else ""
        words += f"; in {_runs(row)} it went from {controls}{average}"
    if (half := half_words(row)) and row.beyond:
        of = "fall" if verb == "fell" else "rise"
        words += f"; half its {of} was over by step {half}"
        if (steps := control_half_words(row)) and controls_went_along(row):
            words += f", in {_runs(row)} by step {steps}"
    return f"{words}."


def _runs(row: Row) -> str:
    return "control runs" if len(row.controls) > 1 else "the control run"


def _counted(some: Sequence[Row], rows: Sequence[Row], *, whole: bool) -> str:
    if len(rows) == 1:
        return sentence_start(rows[0].quantity)
    if not whole:  # "all" would count what failed as well
        return f"{len(some):,} of {len(rows):,} measured quantities"
    if len(some) < len(rows):
        return f"{len(some):,} of {len(rows):,} quantities"
    return "Both quantities" if len(rows) == 2 else f"All {len(rows):,} quantities"


def _nothing_judged(content: Content, rows: Sequence[Row]) -> tuple[str, str]:
    """Return the headline where no row could be judged."""
    if rows and len(content.steps) >= MIN_STEPS and not any(row.noise_known for row in rows):
        lead = "Without the noise of a value, no change can be told from it."
        return f"Noise was not measured, so {plural(len(rows), 'row')} could not be judged", lead
    what = f" {plural(len(rows), 'row')}" if rows else ""
    return f"Too few checkpoints to judge{what}", (
        f"The trajectory has {plural(len(content.steps), 'checkpoint')}; at least {MIN_STEPS} that "
        "can be used, and more for many rows, are needed to tell a change from chance. The figures "
        "show what was measured."
    )


def _nothing(rows: Sequence[Row]) -> str:
    subject = f"None of the {len(rows):,} quantities measured here changed"
    if len(rows) == 1:
        subject = f"{sentence_start(rows[0].name)} did not change"
    return f"{subject} by more than refitting, other texts or chance would give."


def _settled(rows: Sequence[Row]) -> str:
    """From when on no further change of the rows can be measured."""
    settled = [row.settled_step for row in rows]
    last = max(row.steps[-1] for row in rows)
    if not all(math.isfinite(s) for s in settled) or max(settled) >= last:
        return ""
    step = step_text(max(settled))
    one = len(rows) == 1
    return f"After step {step} {'its' if one else 'their'} further change is too small to measure."


def _sentences(*parts: str) -> str:
    return " ".join(filter(None, parts))


def _basis(rows: Sequence[Row], fair: Sequence[Row]) -> list[str]:
    """Say how many rows were tested, at which level where p bears it out, and which were not."""
    if not rows:
        return []
    said = []
    if fair:
        sections = len({row.section for row in fair})
        words = f"{plural(len(fair), 'row')} in {plural(sections, 'section')} were tested"
        words = "1 row was tested" if len(fair) == 1 else words
        whole = all(math.isfinite(row.p_uncorrected) for row in fair)
        over = "over the whole page" if whole else "within each section"
        level = f" at α = {ALPHA:g}, p corrected by Holm’s method {over}"
        borne_out = all(row.p_value <= ALPHA for row in fair if row.changed and not row.beyond)
        said.append(f"{words}{level if borne_out else ''}.")
        alone = sum(row.beyond and not row.p_value <= ALPHA for row in fair)
        if alone:
            of, rest = f"{alone:,} of them changed", "alone, not by their order in time"
            said.append(f"{of} by their difference from the control runs {rest}.")
    left = [row for row in rows if not row.judgeable]
    few, unknown = (sum(row.noise_known is known for row in left) for known in (True, False))
    if few and fair:
        rows_left = plural(few, "row")
        said.append(
            f"Too few checkpoints to judge {rows_left}, or jitter with memory looks the same."
        )
    if unknown:
        said.append(f"{plural(unknown, 'row')} could not be judged: the noise was not measured.")
    return said


def _failed(content: Content) -> list[str]:
    """Say how many observables are not counted, because nothing of them was measured."""
    lost, all_of_them = len(content.problems.lost), len(content.problems.standings)
    if not lost:
        return []
    verb = "is" if lost == 1 else "are"
    return [f"{lost:,} of {plural(all_of_them, 'observable')} failed and {verb} not counted."]


def _controls(content: Content) -> list[str]:
    """Say which control runs there are, and how many rows were not measured in them."""
    if not content.controls:
        return []
    names = ", ".join(filter(None, content.controls))
    said = [f"Control run{'s' * (len(content.controls) > 1)} to compare with: {names}."]
    without = sum(r.judgeable and not r.controlled for r in judged(content.rows))
    if without:
        verb = "was" if without == 1 else "were"
        said.append(f"{plural(without, 'row')} {verb} not compared with them.")
    return said


def _weight_change(rows: Sequence[Row]) -> list[str]:
    moving = [row.changed for row in rows if row.role == "motion"]
    if not moving:
        return []
    words = (
        f"The weights changed in {sum(moving):,} of {plural(len(moving), 'row')} that follow them. "
        "Moving weights need not change what the model does, so they are not counted."
    )
    return [words]
