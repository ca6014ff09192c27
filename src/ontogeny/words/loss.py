"""What the loss of a run says: what it passed and when, and what the run can predict.

Every sentence is a template whose condition is a result, so that none of them can be said of a run
that learned nothing. The lines that the loss passes carry their interval over texts; whether the
loss fell by more than in control runs is the verdict of its row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..dynamics.reasons import Reason
from .formats import joined, number, plural, step_text, three_digits, value_range, with_interval
from .landmarks import Line, LossStory
from .one_model import alike
from .reasons import NOT_CHANGED, UNJUDGED
from .row_words import values_words
from .rows import Row
from .since_base import WHY

_LESS_THAN_PAIRS = "What it gains from context is less than pairs of tokens would give."
_MOVED = {"fell as renamed": "fell", "rose": "rose"}
_ONLY = {
    "surer": "It became surer of what it says, and is not shown to predict better or worse.",
    "less sure": "It became less sure of what it says, and is not shown to predict better or "
    "worse.",
    "better": "It predicts better at its best temperature, and is too sure.",
    "worse": "It predicts worse at its best temperature.",
    "words": "It prefers other words, and is not shown to know more or less of their places.",
}
_FELL = ("fell", "fell as controls", "undecided", "fell as renamed")


@dataclass(frozen=True)
class Sentence:
    """One of the three sentences of the first screen: what matters in bold, and what it rests on.

    ``direction`` is where the loss went, of the sentence that says so.
    """

    lead: str
    text: str
    direction: str = ""


def loss_heading(loss: LossStory, steps: Sequence[int], halves: bool = True) -> str:
    """Return what was learned, in order, or what became of the loss.

    `halves` says when half of each gain was made, which runs that learned alike do not share.
    """
    if loss.outcome == "fell":
        return _passed_in_order(loss, halves)
    if loss.why and loss.outcome in _MOVED:
        return f"The loss {_MOVED[loss.outcome]} {WHY[loss.why]}"
    better = _better_than(loss)
    always = {line.words for line in loss.lines.values() if line.state == "always"}
    when = "at every checkpoint" if better in always else "at the last checkpoint"
    if better and loss.outcome in ("still", "no course", "unjudged"):
        doubt = "; no trend of its loss can be told" * (loss.outcome == "unjudged")
        return f"It predicts better than {better} {when}{doubt}"
    if loss.outcome == "unjudged":
        return _unjudged_heading(loss.row, steps)
    if loss.outcome == "no course" and loss.row is not None:
        return f"The loss moved {NOT_CHANGED[Reason(loss.row.reason)]}"
    return {
        "fell as controls": "The loss is not shown to have fallen by more than in control runs",
        "undecided": "The loss fell by more than in every control run, which does not decide",
        "fell as renamed": "The loss fell, and is not shown to have learned these {word}s",
        "forgot": f"The model forgot {loss.forgot}: its loss rose from "
        f"{values_words(loss.first, loss.last)}",
        "rose": "The loss rose: the model predicts worse than at first",
        "still": "The loss did not change by more than its noise",
    }[loss.outcome]


def _unjudged_heading(row: Row | None, steps: Sequence[int]) -> str:
    """Say what keeps the loss from being judged."""
    if row is not None and row.state.kind == "unmeasured":  # with 26 checkpoints of one text
        return "It is not known whether the loss changed by more than noise"
    if row is not None and row.state.kind in ("slow", "memory"):
        verb = "rose" if row.change > 0 else "fell"
        return f"The loss {verb} by more than its noise; {UNJUDGED[row.state.kind]}"
    return f"{plural(len(steps), 'checkpoint')}: too few to tell a course"


def _passed_in_order(loss: LossStory, halves: bool) -> str:
    """Return what the loss passed, first things first; both need their interval over texts."""
    words = loss.lines.get("unigram")
    if words is None:
        return f"The loss fell from {values_words(loss.first, loss.last)}"
    if not words.passed:
        return "The loss fell, but not surely below that of {word} frequencies"
    if loss.uses_context is None:
        return "The loss fell below that of {word} frequencies"
    if not loss.uses_context:
        return "It learned {word} frequencies, with no sure use of context"
    if words.state == "always":
        passed = [line.words for line in loss.lines.values() if line.state == "passed"]
        if passed:
            return f"It passed the loss of {passed[-1]} during the run"
        return f"Its loss fell from {values_words(loss.first, loss.last)}"
    return _gains_in_order(loss, halves)


def _worse_than_pairs(loss: LossStory) -> bool:
    """Return whether the loss ends above that of bigrams."""
    return "bigram" in loss.lines and loss.lines["bigram"].state in ("never", "left")


def _gains_in_order(loss: LossStory, halves: bool) -> str:
    """Return what was learned, in order where the intervals of the halves are apart."""
    pairs = any(gain.kind == "before" for gain in loss.gains)
    more, part = "more of the context", ""
    if _worse_than_pairs(loss):
        more, part = "some context beyond it", "in part "
    words = {
        "frequencies": "{word} frequencies",
        "before": f"{part}which token follows which",
        "context": more if pairs else "context",
    }
    gains = [words[gain.kind] for gain in loss.gains]
    if not any(gain.kind == "frequencies" for gain in loss.gains):
        return f"It predicts better than {_better_than(loss)}"
    if all(gain.kind == "frequencies" for gain in loss.gains):
        return f"It learned {' and '.join([*gains, words['context']])}"
    if len(gains) > 1 and all(a.high <= b.low for a, b in pairwise(loss.gains)):
        if loss.gains[0].kind == "frequencies":
            gains[0] += " first"
        if halves:
            what = ["half of this gain", *["half"] * len(gains)]
            gains = [
                f"{gain} ({half} by {{step}} {step_text(of.step)})"
                for gain, half, of in zip(gains, what, loss.gains, strict=False)
            ]
        return f"It learned {', then '.join(gains)}"
    return f"It learned {joined(gains)}"


def _better_than(loss: LossStory) -> str:
    """Return the last line that the loss surely passed, of those that own frequencies do not.

    Word frequencies and bigrams of few texts are easily passed by those of a larger training text;
    nothing is called better than them that is not better than its own.
    """
    passed = ""
    for name, line in loss.lines.items():
        of_model = loss.of_model.get(f"own_{name}")
        if line.passed and of_model is not None and of_model.passed:
            passed = line.words
    return passed


def ability(loss: LossStory | None, running: bool = False) -> Sentence:
    """Say what the model can do, against a blind guess and against frequencies."""
    if loss is None:
        return Sentence("The loss was not measured,", "so what the model can predict is not known.")
    course = ""
    if loss.rises:
        step = with_interval(loss.best_step, loss.best_low, loss.best_high)
        rise = loss.last - loss.best
        best, risen = (number(value, min(0.1, rise)) for value in (loss.best, rise))
        course = f"Its loss was lowest, {best}, at {{step}} {step}, and has risen by {risen} since."
    if math.isfinite(loss.lost_after):
        lost = (
            f"After {{step}} {step_text(loss.lost_after)} the loss was not measured or not finite."
        )
        course = f"{course} {lost}".strip()
    lines = [
        course,
        *(_line_words(line, running) for line in loss.lines.values()),
        _LESS_THAN_PAIRS if _worse_than_pairs(loss) and loss.uses_context else "",
        _context_words(loss),
    ]
    side = "falls" if loss.outcome in _FELL else ""
    side = "rises" if loss.outcome in ("rose", "forgot") else side
    return Sentence(_ability_lead(loss), " ".join(filter(None, lines)), direction=side)


def _ability_lead(loss: LossStory) -> str:
    if loss.why and loss.outcome in _MOVED:
        return _ONLY[loss.why]
    words = loss.lines.get("unigram")
    better = _better_than(loss)
    if better and loss.outcome in ("fell", "unjudged", "still", "no course"):
        if not _like_base(loss):
            return f"It predicts better than {better}."
        level = {line.words: three_digits(line.level) for line in loss.lines.values()}[better]
        base = f"Like its base ({three_digits(loss.first)})"
        return f"{base}, it predicts better than {better} ({level})."
    if loss.outcome == "fell" and words and words.passed:
        return "It knows how often {word}s occur." if loss.of_model else "Its loss fell."
    if loss.outcome == "fell":
        return f"It is not surely better than {words.words}." if words else "Its loss fell."
    return {
        "fell as controls": "It is not shown to predict better than motion gives.",
        "undecided": "It is not yet shown to have learned to predict.",
        "fell as renamed": "It is not shown to have learned these {word}s.",
        "forgot": f"It forgot {loss.forgot}.",
        "rose": "It predicts worse than at first.",
        "still": "Its predictions did not surely change.",
        "no course": "It is not shown to predict better.",
        "unjudged": "What it learned cannot be judged.",
    }[loss.outcome]


def _like_base(loss: LossStory) -> bool:
    """Return whether its base was surely below all lines already that it is surely below."""
    passed = [line for line in (*loss.lines.values(), *loss.of_model.values()) if line.passed]
    return loss.based and bool(passed) and all(line.state == "always" for line in passed)


def one_model_heading(loss: LossStory) -> str:
    """Return what one checkpoint is surely better than, or that it is not surely better."""
    if better := _better_than(loss):
        return f"It predicts better than {better}"
    words = loss.lines.get("unigram")
    if words is not None and words.passed:
        return f"Its loss is below that of {words.words}; use of context is not shown"
    return "It is not surely better than " + (words.words if words else "a blind guess")


def of_one_model(loss: LossStory) -> Sentence:
    """Say what one checkpoint can predict, against a blind guess and against frequencies."""
    lines = [*loss.lines.values(), *loss.of_model.values()]
    write = alike([loss.last, *(line.level for line in lines)])
    text = f"The loss is {write(loss.last)} {loss.units}".rstrip()
    if math.isfinite(loss.uniform):
        text += f"; a blind guess costs {write(loss.uniform)}"
    surely = [line for line in lines if line.passed]
    parts = [f"{line.words} {write(line.level)}" for line in surely]
    lead, text = f"{text}.", f"Surely below {joined(parts)}." if parts else ""
    for line in lines:
        if not line.passed:
            how = "not below" if line.state == "never" else "not surely below"
            text += f" It is {how} {line.words}, {write(line.level)}."
    return Sentence(lead, text.strip())


def _line_words(line: Line, running: bool) -> str:
    """Say that the loss did not surely pass a line; when it did, the numbers below say."""
    level = f"{number(line.level, 0.1)}, the loss of {line.words}"
    return {
        "unsure": f"Its loss ends below {level}, on these texts, but not surely on others.",
        "left": f"Its loss does not stay below {level}.",
        "never": f"Its loss is {'not yet' if running else 'never'} below {level}.",
    }.get(line.state, "")


def _context_words(loss: LossStory) -> str:
    """Say whether what stands around a token helps, by the mean of the model's predictions."""
    words, pairs = (loss.of_model.get(name) for name in ("own_unigram", "own_bigram"))
    if words is None:
        return ""
    if not words.passed:
        why = "It does not surely use context"
        return f"{why}: its average prediction, without any, costs {number(words.level, 0.1)}."
    if pairs is not None and not pairs.passed:
        why = "It does not surely use more than the token before"
        cost = number(pairs.level, 0.1)
        return f"{why}: the mean of its predictions after each token costs {cost}."
    if _like_base(loss):
        return ""
    cost = number(words.level, 0.1)
    gain = f"{number(words.level - loss.last, 0.1)} {loss.units.split(' per ')[0]}".strip()
    average = f"Its average prediction, without context, would cost {cost}"
    return f"{average}: the other {gain} come from context."


def control_loss(loss: LossStory | None) -> str:
    """Say to what the loss went in control runs."""
    controls = loss.row.controls if loss and loss.row else ()
    ends = [c.last_value for c in controls if math.isfinite(c.first_value + c.last_value)]
    last = value_range(ends, lambda value: number(value, 0.1)) if ends else ""
    return f"their loss went to {last}" if last else ""
