"""The page's headline: what was learned, what changed beyond its motion, and what was not judged.

A row counts as changed where it is more than noise and chance. Only control runs, which move as
far and learn nothing, can tell that it is more than motion, and only performance on held-out texts
can be learned. Without controls the page says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..dynamics.reasons import Reason
from .basis import basis, failed, unjudged
from .content import Content
from .controls import ADD_ONE, PAIRS, began_trained, in_pairs, made_of_motion
from .formats import (
    control_runs,
    its,
    joined,
    mid_sentence,
    p_words,
    plural,
    sentence_start,
    step_text,
)
from .levels import VERDICTS
from .order import order_sentence, ordered_rows, owner
from .reasons import MAY_GIVE, UNJUDGED, may_give, not_changed
from .row_words import (
    UNCONTROLLED,
    change_words,
    control_ends,
    control_half_words,
    controls_went_along,
    direction,
    half_words,
    values_words,
)
from .rows import Row, counted_rows
from .sections import CLAIMED_LEAD, claims_sentence


@dataclass(frozen=True)
class Overview:
    """A heading, what matters most, what it rests on, and the numbers of rows.

    ``named`` holds the rows that the lead names, ``direction`` where the first of them goes, and
    ``how_to`` the one of the details that says how a stronger control is added.
    """

    heading: str
    lead: str
    details: tuple[str, ...]
    learned: int
    beyond: int
    changed: int
    judged: int
    named: tuple[Row, ...] = ()
    how_to: str = ""

    @property
    def direction(self) -> str:
        """Where the first row that is named goes."""
        return direction(self.named[0]) if self.named else ""


def overview(content: Content, introduced: bool = False) -> Overview:
    """Say what was learned and what changed, from what to what, and how sure that is.

    `introduced` is whether it has been said before what control runs are.
    """
    if content.headline:  # a comparison of runs says itself what they show together
        return _of_headline(content)
    if content.one_model and not any(node.role == "claims" for node in content.nodes):
        lead = (
            "It has no time axis: each number below stands beside what chance gives, if measured. "
            "What training taught it cannot be told: control runs, which move as far in random "
            "directions, need several checkpoints."
        )
        return Overview("One model, at one checkpoint", lead, tuple(failed(content)), 0, 0, 0, 0)
    rows = counted_rows(content.rows)
    enough = len(content.steps) >= content.levels.least_steps
    fair = [row for row in rows if row.judgeable and (enough or row.beyond or row.learned)]
    heading, lead, leading = _headline(content, rows, fair)
    details = basis(content, rows, fair, introduced)
    return Overview(
        content.voice.fill(heading) + content.doubted,
        content.voice.fill(lead),
        tuple(map(content.voice.fill, details)),
        learned=sum(row.learned for row in fair),
        beyond=sum(row.beyond or row.learned for row in fair),
        changed=sum(row.changed for row in fair),
        judged=len(rows),
        named=tuple(leading),
        how_to=ADD_ONE if ADD_ONE in details else "",
    )


def _of_headline(content: Content) -> Overview:
    """Return the overview that a result brings along."""
    headline = content.headline
    counts: dict[str, Any] = {name: int(headline.get(name) or 0) for name in (*VERDICTS, "judged")}
    return Overview(
        str(headline.get("heading") or ""),
        str(headline.get("lead") or ""),
        tuple(map(str, headline.get("details") or ())),
        **counts,
        named=tuple(row for row in content.rows if row.learned)[:1],
    )


def _headline(
    content: Content, rows: Sequence[Row], fair: Sequence[Row]
) -> tuple[str, str, Sequence[Row]]:
    """Return heading, lead and the rows that the lead names."""
    if claims := [node for node in content.nodes if node.role == "claims"]:
        return ", ".join(claims_sentence(node) for node in claims), CLAIMED_LEAD, ()
    if not fair and (rows or len(content.steps) < content.levels.least_steps):
        return (*_nothing_judged(content, rows), ())
    if not rows:
        lead = "No observable of this study has rows that are tested against chance and noise."
        return "Nothing was tested", lead, ()
    controlled = [row for row in fair if row.controlled]
    if controlled:
        controlled = [row for row in fair if row.controlled or row.learned]
        return _against_controls(rows, controlled)
    changed = [row for row in fair if row.changed]
    if any(row.learned for row in fair):
        return _learned_alone(rows, fair)
    if not changed:
        return "No change above chance and noise", _nothing(fair), ()
    few, what, opening = any(row.controls for row in fair), "", ""
    why = "too few control runs to compare with" if few else "no control was run"
    if few and made_of_motion(content) and began_trained(node.dataset for node in content.nodes):
        able = [row for row in fair if row.can_learn]
        why = "control runs cannot judge a trained start"
        opening = f"{_not_learned(able)}; " if able else ""
        what = undecided(able[0], trained=True) if able else ""
    count = _counted(changed, fair)
    count = mid_sentence(count) if opening else count
    heading = f"{opening}{count} changed{left_out(rows, fair)}; {why}"
    lead = _sentences(UNCONTROLLED, what, order_sentence(fair), _settled(changed))
    return heading, lead, ordered_rows(fair)


def _against_controls(
    rows: Sequence[Row], controlled: Sequence[Row]
) -> tuple[str, str, Sequence[Row]]:
    """Return the headline of a study with control runs."""
    learned = [row for row in controlled if row.learned]
    able = [row for row in controlled if row.can_learn]
    if learned:
        others = [row for row in controlled if not row.learned]
        further = _further(others) + left_out(rows, controlled)
        heading = "; ".join(filter(None, [_learned_words(learned), further.removeprefix(", ")]))
        first_rows = _first_of_each(learned)[:2]
        lead = [*map(_course, first_rows), _settled(learned), order_sentence(controlled)]
        return heading, _sentences(*lead), (*first_rows, *ordered_rows(controlled))
    if able:
        able = sorted(able, key=lambda row: not row.outside)
        first_rows = _first_of_each(able)[:2]
        lead = [*map(_course, first_rows), undecided(first_rows[0]), _beyond_sentence(controlled)]
        return _not_learned(able), _sentences(*lead), first_rows
    short = any(row.can_learn for row in rows)
    opening = "Learning could not be judged" if short else "Learning was not measured here"
    beyond = sum(row.beyond for row in controlled)
    ends = (
        f"{beyond:,} of {plural(len(controlled), 'row')} changed beyond {its(beyond)} motion"
        f"{left_out(rows, controlled)}"
    )
    return f"{opening}: {ends}", order_sentence(controlled), ordered_rows(controlled)


def left_out(rows: Sequence[Row], judged: Sequence[Row]) -> str:
    """Say how many rows a heading does not count; empty where it counts them all."""
    left, judgeable = len(rows) - len(judged), [sum(r.judgeable for r in s) for s in (rows, judged)]
    how = "compared" if judgeable[0] > judgeable[1] else "judged"
    return f", {left:,} more could not be {how}" if left else ""


def _learned_alone(rows: Sequence[Row], fair: Sequence[Row]) -> tuple[str, str, Sequence[Row]]:
    """Return the headline of what was learned by its own test, where no control was run."""
    learned = [row for row in fair if row.learned]
    others = [row for row in fair if not row.learned]
    changed = sum(row.changed for row in others)
    further = f"{changed:,} of {plural(len(others), 'further row')} changed" if others else ""
    further = (further + left_out(rows, fair)).removeprefix(", ")
    heading = "; ".join(filter(None, [_learned_words(learned), further]))
    rows = _first_of_each(learned)[:2]
    motion = f"No control was run: {mid_sentence(UNCONTROLLED)}" if changed else ""
    lead = _sentences(*map(_course, rows), _settled(learned), motion, order_sentence(fair))
    return heading, lead, (*rows, *ordered_rows(fair))


def _not_learned(able: Sequence[Row]) -> str:
    """Return what can be said where no performance was learned: that it was not, or not shown."""
    if lost := [sentence_start(owner(row)) for row in able if row.lost]:
        return f"{joined(lost)} got worse: this was forgotten"
    if all(row.not_improved for row in able):
        return "Nothing here was learned"
    row = able[0]
    if row.outside:
        where = control_runs(len(row.controls)) if len(row.controls) == 1 else "every control run"
        return f"Not shown to be learned: {mid_sentence(owner(row))} did better than in {where}"
    return "Not shown whether anything was learned"


def undecided(row: Row, trained: bool = False) -> str:
    """Say of a row on the better side of every control run what would decide; else nothing.

    `trained` is whether the run began trained.
    """
    if not row.outside or row.beyond or not row.noise_known:
        return ""
    if trained and not in_pairs(control.name for control in row.controls):
        return f"Motion mostly harms a trained start; {PAIRS}."
    count = plural(len(row.nulls), "control run")
    if not row.moved:
        are = "is" if len(row.nulls) == 1 else "are"
        enough = f"{count} {are} enough ({p_words(row.p_learned)}); the texts are not"
        lead = enough if math.isfinite(row.controls_needed) else "The texts are too few"
        return f"{lead}: {mid_sentence(owner(row))} {change_words(row)}. More texts may decide."
    few = f"{count} cannot decide whether that is more than motion gives"
    if math.isfinite(row.controls_needed):
        needed = int(row.controls_needed)
        return f"{few}; {needed} of this spread would: --set controls.count={needed}."
    return f"{few}, nor would many more of this spread; more texts may."


def _learned_words(learned: Sequence[Row]) -> str:
    """Return what was learned, by name where there are at most two quantities."""
    names = list(dict.fromkeys(row.quantity for row in learned))
    if len(names) > 2:
        rows = f" ({len(learned):,} rows)" if len(learned) > len(names) else ""
        return f"{len(names):,} quantities were learned{rows}"
    if len(names) == 2:
        return f"{sentence_start(names[0])} and {mid_sentence(names[1])} were learned"
    where = f" in {plural(len(learned), 'layer')}" if len(learned) > 1 else ""
    return f"{sentence_start(names[0])} was learned{where}"


def _further(others: Sequence[Row]) -> str:
    """Return how many of the other rows changed beyond their motion."""
    if not others:
        return ""
    beyond = sum(row.beyond for row in others)
    if not beyond:
        verb = "is" if len(others) == 1 else "are"
        few = plural(len(others), "further row")
        return f"{few} {verb} not shown to have changed beyond motion"
    of_all = f"{beyond:,} of {plural(len(others), 'further row')}"
    return f"{of_all} changed beyond {its(beyond)} motion"


def _beyond_sentence(rows: Sequence[Row]) -> str:
    """Say how many rows changed, and how many of them by more than controls."""
    changed, beyond = (sum(getattr(row, name) for row in rows) for name in ("changed", "beyond"))
    words = f"{changed:,} of {plural(len(rows), 'row')} changed"
    if not changed or beyond == changed:
        return f"{words}{f', beyond {its(beyond)} motion' if changed else ''}."
    some = f"{beyond:,}" if beyond else "none"
    return f"{words}, {some} of them beyond {its(beyond)} motion."


def _first_of_each(rows: Sequence[Row]) -> list[Row]:
    """Return the first row of every quantity."""
    first: dict[tuple[str, str], Row] = {}
    for row in rows:
        first.setdefault((row.section, row.quantity), row)
    return list(first.values())


def _course(row: Row) -> str:
    """Say from what to what a row went, what controls did, and when half of that was over."""
    verb = {"falls": "fell", "rises": "rose"}.get(direction(row), "")
    ends = values_words(row.first_value, row.last_value)
    if not verb or not ends:
        return ""
    verb = verb if row.changed else "went"
    units = f"({row.units})" if row.units.startswith("share of") else row.units
    words = f"{sentence_start(owner(row))} {verb} from {ends} {units}".rstrip()
    if not row.changed:
        words += _why_not(row)
    if controls := values_words(*control_ends(row)):
        average = " on average" if len(row.controls) > 1 else ""
        words += f"; in {control_runs(len(row.controls))} it went from {controls}{average}"
    if (half := half_words(row)) and row.beyond:
        of = "fall" if verb == "fell" else "rise"
        words += f"; half of the run’s {of} was over by {{step}} {half}"
        if controls_went_along(row):
            words += f", in {control_runs(len(row.controls))} by {{step}} {control_half_words(row)}"
    return f"{words}."


def _why_not(row: Row) -> str:
    """Say what decided that a row that went from one value to another did not change."""
    reason = Reason(row.reason)
    if reason == Reason.WITHIN:
        return ", which is within its noise"
    if reason in MAY_GIVE and row.moved:
        return f", by more than noise, but {may_give([row], reason)}"
    return f"; it is not judged, {UNJUDGED[row.state.kind]}" if row.state.kind in UNJUDGED else ""


def _counted(some: Sequence[Row], rows: Sequence[Row]) -> str:
    if len(rows) == 1:
        return sentence_start(rows[0].quantity)
    return f"{len(some):,} of {len(rows):,} rows"


def _nothing_judged(content: Content, rows: Sequence[Row]) -> tuple[str, str]:
    """Return the headline where no row could be judged."""
    least = content.levels.least_steps
    if rows and len(content.steps) >= least and {row.state.kind for row in rows} - {"few", "many"}:
        return "Nothing could be judged", " ".join(unjudged(rows))
    what = f" {plural(len(rows), 'row')}" if rows else ""
    return f"Too few checkpoints to judge{what}", (
        f"The trajectory has {plural(len(content.steps), 'checkpoint')}. To tell a change from "
        f"chance, one row takes at least {least} that can be used, and many rows together take "
        "more. The figures show what was measured."
    )


def _nothing(rows: Sequence[Row]) -> str:
    subject = f"None of the {len(rows):,} rows measured here changed"
    if len(rows) == 1:
        subject = f"{sentence_start(rows[0].name)} did not change"
    return f"{subject}: {not_changed(rows)}."


def _settled(rows: Sequence[Row]) -> str:
    """From when on no further change of the rows can be measured."""
    settled = [row.settled_step for row in rows]
    last = max(row.steps[-1] for row in rows)
    if not all(math.isfinite(s) for s in settled) or max(settled) >= last:
        return ""
    step = step_text(max(settled))
    return f"After {{step}} {step} {its(len(rows))} further change is too small to measure."


def _sentences(*parts: str) -> str:
    return " ".join(filter(None, parts))
