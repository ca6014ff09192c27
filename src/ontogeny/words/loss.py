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

from .formats import interval_text, joined, number, plural, sentence_start, step_text, value_range
from .landmarks import Line, LossStory
from .one_model import alike
from .row_words import mean, values_words

_FELL = ("fell", "fell as controls", "undecided", "fell as renamed")


@dataclass(frozen=True)
class Sentence:
    """One of the three sentences of the first screen: what matters in bold, and what it rests on.

    ``direction`` is where the loss went, of the sentence that says so.
    """

    lead: str
    text: str
    direction: str = ""


def loss_heading(loss: LossStory, steps: Sequence[int]) -> str:
    """Return what the loss passed, in order, or what became of it."""
    if loss.outcome == "fell":
        return _passed_in_order(loss)
    better = _better_than(loss)
    if loss.outcome in ("still", "no course") and better:
        return f"Better than {better} at the last checkpoint"
    if loss.outcome == "unjudged":
        if better:
            return f"Better than {better}; too few checkpoints to say since when"
        return f"{plural(len(steps), 'checkpoint')}: too few to tell a course"
    return {
        "fell as controls": "Not shown that the loss fell by more than in control runs",
        "undecided": "The loss fell by more than in every control run, too few to decide",
        "fell as renamed": "The loss fell, and is not shown to have learned these words",
        "rose": "The loss rose: the model predicts worse than at first",
        "still": "The loss did not change above chance and noise",
        "no course": "The loss changed, in an order of checkpoints that chance may give",
    }[loss.outcome]


def _passed_in_order(loss: LossStory) -> str:
    """Return what the loss passed, first things first; both need their interval over texts."""
    words = loss.lines.get("unigram")
    if words is None:
        return f"The loss fell from {values_words(loss.first, loss.last)}"
    if not words.passed:
        return "The loss fell, but not surely below that of word frequencies"
    if loss.uses_context is None:
        return "The loss fell below that of word frequencies"
    if not loss.uses_context:
        return "How often words occur, and no sure use of what stands around them"
    if words.state == "at every step":
        return f"Better than {words.words} from the first checkpoint on"
    return _gains_in_order(loss)


def _gains_in_order(loss: LossStory) -> str:
    """Return what lowered the loss, in order where the intervals of the halves are apart."""
    pairs = any(gain.kind == "before" for gain in loss.gains)
    around = "before" if "bigram" in loss.lines else "around"
    words = {
        "frequencies": "how often words occur",
        "before": "which follow which",
        "context": f"more of what stands {around}" if pairs else f"what stands {around} them",
    }
    gains = [words[gain.kind] for gain in loss.gains]
    if not any(gain.kind == "frequencies" for gain in loss.gains):
        return f"Better than {_better_than(loss)}"
    if all(gain.kind == "frequencies" for gain in loss.gains):
        return sentence_start(" and ".join([*gains, words["context"]]))
    if len(gains) > 1 and all(a.high <= b.low for a, b in pairwise(loss.gains)):
        return f"First {', then '.join(gains)}"
    return sentence_start(joined(gains))


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


def ability(loss: LossStory | None) -> Sentence:
    """Say what the model can do, against a blind guess and against frequencies."""
    if loss is None:
        return Sentence("The loss was not measured,", "so what the model can predict is not known.")
    ends = values_words(loss.first, loss.last)
    verb = "fell" if loss.outcome in _FELL else "rose" if loss.outcome == "rose" else "went"
    course = f"The loss {verb} from {ends} {loss.units}".rstrip() + "."
    if loss.first == loss.last or not ends:
        course = f"The loss is {number(loss.last)} {loss.units}".rstrip() + "."
    if loss.rises:
        at = f"It was lowest, {number(loss.best, 0.01)}, at step {step_text(loss.best_step)}"
        course += f" {at}, and rose by {number(loss.last - loss.best, 0.01)} since."
    if math.isfinite(loss.lost_after):
        course += f" After step {step_text(loss.lost_after)} it was not measured or not finite."
    if math.isfinite(loss.uniform):
        course += f" A blind guess costs {number(loss.uniform, _fine(loss))}."
    lines = [_line_words(line, _fine(loss)) for line in loss.lines.values()]
    lines = [course, *lines, _context_words(loss)]
    side = {"fell": "falls", "rose": "rises"}.get(verb, "")
    return Sentence(_ability_lead(loss), " ".join(filter(None, lines)), direction=side)


def _ability_lead(loss: LossStory) -> str:
    words = loss.lines.get("unigram")
    better = _better_than(loss)
    if better and loss.outcome in ("fell", "unjudged", "still", "no course"):
        return f"It predicts better than {better}."
    if loss.outcome == "fell" and words and words.passed:
        return "It knows how often words occur." if loss.of_model else "Its loss fell."
    if loss.outcome == "fell":
        return f"It is not surely better than {words.words}." if words else "Its loss fell."
    return {
        "fell as controls": "It is not shown to predict better than motion gives.",
        "undecided": "It is not yet shown to have learned to predict.",
        "fell as renamed": "It is not shown to have learned these words.",
        "rose": "It predicts worse than at first.",
        "still": "Its predictions did not surely change.",
        "no course": "It is not shown to predict better.",
        "unjudged": "What it learned cannot be judged.",
    }[loss.outcome]


def one_model_heading(loss: LossStory) -> str:
    """Return what one checkpoint is surely better than, or that it is not surely better."""
    if better := _better_than(loss):
        return f"Better than {better}"
    words = loss.lines.get("unigram")
    if words is not None and words.passed:
        return f"A loss below that of {words.words}; use of context is not shown"
    return "Not surely better than " + (words.words if words else "a blind guess")


def of_one_model(loss: LossStory) -> Sentence:
    """Say what one checkpoint can predict, against a blind guess and against frequencies."""
    lines = [*loss.lines.values(), *list(loss.of_model.values())[:1]]
    write = alike([loss.last, *(line.level for line in lines)])
    text = f"The loss is {write(loss.last)} {loss.units}".rstrip()
    if math.isfinite(loss.uniform):
        text += f"; a blind guess costs {write(loss.uniform)}"
    surely = [line for line in lines if line.passed]
    parts = [f"{line.words} {write(line.level)}" for line in surely]
    text += f". Surely below {joined(parts)}." if parts else "."
    for line in lines:
        if not line.passed:
            how = "not below" if line.state == "never" else "not surely below"
            text += f" It is {how} {line.words}, {write(line.level)}."
    return Sentence(f"{one_model_heading(loss)}.", text)


def _fine(loss: LossStory) -> float:
    """Return how fine levels are written: as fine as a small change of the loss."""
    return min(0.1, abs(loss.last - loss.first) or 0.1)


def _line_words(line: Line, fine: float) -> str:
    """Say when the loss passed a line, or that it did not."""
    level = f"{number(line.level, fine)}, the loss of {line.words}"
    if line.state == "passed":
        between = interval_text(line.low, line.high).replace("–", " and ")
        when = f"Between steps {between}" if between else f"At step {step_text(line.high)}"
        return f"{when} it passed {level}."
    return {
        "at every step": f"It is below {level}, at every step that was measured.",
        "unsure": f"It ends below {level}, on these texts, but not surely on others.",
        "left": f"It does not stay below {level}.",
        "never": f"It is never below {level}.",
    }[line.state]


def _context_words(loss: LossStory) -> str:
    """Say whether what stands around a token helps, by the mean of the model's predictions."""
    words, pairs = (loss.of_model.get(name) for name in ("own_unigram", "own_bigram"))
    if words is None:
        return ""
    costs = number(words.level, _fine(loss))
    if not words.passed:
        why = "It does not surely use what stands around a token"
        return f"{why}: the mean of its predictions, the same in every place, costs {costs}."
    if pairs is not None and not pairs.passed:
        why = "It does not surely use more than the token before"
        costs = number(pairs.level, _fine(loss))
        return f"{why}: the mean of its predictions after each token costs {costs}."
    return f"The mean of its predictions, the same in every place, would cost {costs}."


def control_loss(loss: LossStory | None) -> str:
    """Say from what to what the loss went in control runs."""
    ends = [pair for pair in loss.controls if all(map(math.isfinite, pair))] if loss else []
    if not ends:
        return ""
    first = number(mean([pair[0] for pair in ends]), 0.1)
    last = value_range([pair[1] for pair in ends], lambda value: number(value, 0.1))
    return f"the loss went from {first} to {last}"
