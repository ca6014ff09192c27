"""The first screen in words: what the run can do, what appeared in it, what its controls do.

Every sentence is a template whose condition is a result, so that none of them can be said of a run
that learned nothing. The lines that the loss passes carry their interval over texts; whether the
loss fell by more than in control runs is the verdict of its row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from ..concepts.lives import Concepts
from ..concepts.nodes import asked_for, failure, fitted_apart, read_concepts
from ..content import Content
from ..formats import interval_text, number, plural, step_text
from ..row_words import mean, values_words
from ..rows import judged
from ..sentences import sentence_start
from ..timing import order_sentence
from ..verdict import MIN_STEPS, verdict
from .landmarks import Line, LossStory, read_loss
from .numbers import Figure, four_numbers, number_range

NAMES_SAID = 4
NO_CONTROL = ("No control was run:", "changes below may be mere motion.")


@dataclass(frozen=True)
class Sentence:
    """One of the three sentences: what matters in bold, and what it rests on.

    ``direction`` is where the loss went, of the sentence that says so.
    """

    lead: str
    text: str
    direction: str = ""


@dataclass(frozen=True)
class FirstScreen:
    """All that the first screen says, and the parts that it draws."""

    heading: str
    sentences: tuple[Sentence, ...]
    numbers: tuple[Figure, ...]
    loss: LossStory | None
    concepts: Concepts | None


def first_screen(content: Content) -> FirstScreen | None:
    """Return the first screen, none where the result brings a headline of its own or has neither.

    A comparison of runs and a recipe say themselves what they show; without a loss and without
    concepts the overview stands first.
    """
    loss, concepts = read_loss(content), read_concepts(content)
    claims = any(node.role == "claims" for node in content.nodes)
    if content.headline or claims or (loss is None and concepts is None):
        return None
    sentences = (
        _ability(loss),
        _appeared(content, concepts),
        _control(content, loss, concepts),
    )
    numbers = four_numbers(content, loss, concepts)
    return FirstScreen(heading(content, loss, concepts), sentences, numbers, loss, concepts)


def heading(content: Content, loss: LossStory | None, concepts: Concepts | None) -> str:
    """Return the heading from landmarks in their order, or what there is instead of them."""
    if loss is None:
        return _without_loss(content, concepts)
    if loss.outcome == "fell":
        return _passed_in_order(loss)
    better = _better_than(loss)
    if loss.outcome in ("still", "no course") and better:
        return f"Better than {better} at the last checkpoint"
    if loss.outcome == "unjudged":
        if better:
            return f"Better than {better}; too few checkpoints to say since when"
        return f"{plural(len(content.steps), 'checkpoint')}: too few to tell a course"
    return {
        "fell as controls": "The loss did not surely fall by more than in control runs",
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
    said = [words[gain.kind] for gain in loss.gains]
    if not any(gain.kind == "frequencies" for gain in loss.gains):
        return f"Better than {_better_than(loss)}"
    if all(gain.kind == "frequencies" for gain in loss.gains):
        return sentence_start(" and ".join([*said, words["context"]]))
    if len(said) > 1 and all(a.high <= b.low for a, b in pairwise(loss.gains)):
        return f"First {', then '.join(said)}"
    return sentence_start(" and ".join(filter(None, [", ".join(said[:-1]), said[-1]])))


def _better_than(loss: LossStory) -> str:
    """Return the last line that the loss surely passed, of those that own frequencies do not.

    Word frequencies and bigrams of few texts are easily passed by those of a larger training text;
    nothing is called better than them that is not better than its own.
    """
    passed = ""
    for name, line in loss.lines.items():
        own = loss.own.get(f"own_{name}")
        if line.passed and own is not None and own.passed:
            passed = line.words
    return passed


def _without_loss(content: Content, concepts: Concepts | None) -> str:
    if concepts is not None and concepts.with_name:
        return f"{_named_words(concepts)}; the loss was not measured"
    return verdict(content).heading


# What it can do.


def _ability(loss: LossStory | None) -> Sentence:
    """Say what the model can do, against a blind guess and against frequencies."""
    if loss is None:
        return Sentence("The loss was not measured,", "so what the model can predict is not known.")
    ends = values_words(loss.first, loss.last)
    verb = {"fell": "fell", "fell as controls": "fell", "rose": "rose"}.get(loss.outcome, "went")
    course = f"The loss {verb} from {ends} {loss.units}".rstrip() + "."
    if loss.first == loss.last or not ends:
        course = f"The loss is {number(loss.last)} {loss.units}".rstrip() + "."
    if math.isfinite(loss.uniform):
        course += f" A blind guess costs {number(loss.uniform, 0.1)}."
    said = [course, *(_line_words(line) for line in loss.lines.values()), _context_words(loss)]
    side = {"fell": "falls", "fell as controls": "falls", "rose": "rises"}.get(loss.outcome, "")
    return Sentence(_ability_lead(loss), " ".join(filter(None, said)), direction=side)


def _ability_lead(loss: LossStory) -> str:
    words = loss.lines.get("unigram")
    judged_or_not = ("fell", "unjudged", "still", "no course")
    if loss.outcome in judged_or_not and (better := _better_than(loss)):
        return f"It predicts better than {better}."
    if loss.outcome == "fell" and words and words.passed:
        return "It knows how often words occur." if loss.own else "Its loss fell."
    if loss.outcome == "fell":
        return f"It is not surely better than {words.words}." if words else "Its loss fell."
    return {
        "fell as controls": "It did not surely learn to predict.",
        "rose": "It predicts worse than at first.",
        "still": "Its predictions did not surely change.",
        "no course": "It did not surely learn to predict.",
        "unjudged": "What it learned cannot be judged.",
    }[loss.outcome]


def _line_words(line: Line) -> str:
    """Say when the loss passed a line, or that it did not."""
    level = f"{number(line.level, 0.1)}, the loss of {line.words}"
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
    words, pairs = (loss.own.get(name) for name in ("own_unigram", "own_bigram"))
    if words is None:
        return ""
    if not words.passed:
        why = "It does not surely use what stands around a token"
        return f"{why}: the mean of its predictions, the same in every place, costs {_cost(words)}."
    if pairs is not None and not pairs.passed:
        why = "It does not surely use more than the token before"
        return f"{why}: the mean of its predictions after each token costs {_cost(pairs)}."
    return f"The mean of its predictions, the same in every place, would cost {_cost(words)}."


def _cost(line: Line) -> str:
    return number(line.level, 0.1)


# What appeared.


def _appeared(content: Content, concepts: Concepts | None) -> Sentence:
    """Say which concepts appeared, or how many other quantities changed."""
    if concepts is None:
        why = ""
        if asked_for(content):
            told = failure(content)
            why = "Concepts could not be computed" + (f": {told.rstrip('.')}." if told else ".")
        return _other_rows(content, why)
    total = plural(len(concepts.every), "concept")
    if not concepts.every:
        return Sentence(
            "No concept was found.",
            f"None of {concepts.latents:,} latents can be read from two checkpoints.",
        )
    if concepts.named is None or concepts.unnamed:
        because = concepts.unnamed.rstrip(".")
        why = f"No name could be given: {because}. " if because else ""
        readable = f"{len(concepts.every):,} can be read from single checkpoints"
        text = f"{why}Of {concepts.latents:,} latents, {readable}. {_births(concepts)}"
        lead = f"{sentence_start(total)} can be read; none was named."
        return Sentence(lead, text.strip())
    if not concepts.named:
        return Sentence(
            "No concept is sharper than in the untrained model.",
            f"{total} can be read, and none got a name. {_births(concepts)}".strip(),
        )
    each = "Each" if concepts.named > 1 else "It"
    text = (
        f"{_listed(concepts)} {each} puts more of its activation on three tokens than "
        f"95 % of the untrained model’s concepts do. {_births(concepts)}"
    ).strip()
    if concepts.named_controls and max(concepts.named_controls)[0] >= concepts.named:
        lead = "No more concepts got a name than in control runs."
        return Sentence(lead, f"{_named_words(concepts)}. {text}")
    if not concepts.named_controls:
        return Sentence(f"{_named_words(concepts)}; motion alone may give as many.", text)
    return Sentence(f"{_named_words(concepts)}.", text)


def _named_words(concepts: Concepts) -> str:
    return f"{concepts.named:,} of {plural(len(concepts.every), 'concept')} got a name"


def _listed(concepts: Concepts) -> str:
    """Say the names of the sharpest concepts, each once."""
    names = list(dict.fromkeys(each.name for each in concepts.with_name))
    quoted = [f"“{name}”" for name in names[:NAMES_SAID]]
    said = quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
    if len(names) > NAMES_SAID:
        return f"Among them {said}."
    return f"Its name is {said}." if concepts.named == 1 else f"The names are {said}."


def _births(concepts: Concepts) -> str:
    """Say how many were born during the run, and between which steps."""
    born = concepts.born
    if concepts.with_name:
        born = tuple(each for each in concepts.with_name if math.isfinite(each.born))
    if not born:
        return "None of them was seen to be born during the run."
    ends = [end for each in born for end in (each.after, each.born, each.before)]
    known = [end for end in ends if math.isfinite(end)]
    between = interval_text(min(known), max(known)).replace("–", " and ")
    when = f"between steps {between}" if between else f"at step {step_text(known[0])}"
    one = len(born) == 1
    return f"{len(born):,} of them {'was' if one else 'were'} born during the run, {when}."


def _other_rows(content: Content, why: str) -> Sentence:
    """Say how many other quantities changed, of a run without concepts."""
    rows = [row for row in judged(content.rows) if row.judgeable and not _of_loss(content, row)]
    apart = "Concepts were fitted to each checkpoint by itself, so that none has a birth."
    why = why or (apart if fitted_apart(content) else "No concepts were fitted.")
    if len(content.steps) < MIN_STEPS or not rows:
        return Sentence(why, "No other quantity could be judged.")
    controlled = [row for row in rows if row.controlled]
    counted, past = (controlled, "beyond") if controlled else (rows, "changed")
    some = sum(getattr(row, past) or row.learned for row in counted)
    further = "1 further quantity" if len(counted) == 1 else f"{len(counted):,} further quantities"
    ending = "changed beyond their motion" if controlled else "changed above chance and noise"
    return Sentence(f"{some:,} of {further} {ending}.", f"{order_sentence(rows)} {why}".strip())


def _of_loss(content: Content, row: object) -> bool:
    return any(row is own for node in content.nodes if node.role == "track" for own in node.rows)


# What the controls do.


def _control(content: Content, loss: LossStory | None, concepts: Concepts | None) -> Sentence:
    """Say what the control runs do."""
    if not content.controls:
        lead, text = NO_CONTROL
        return Sentence(lead, text if len(content.steps) > 1 else "what is below may be chance.")
    count = len(content.controls)
    runs = "the control run" if count == 1 else f"{count} control runs"
    did = list(filter(None, [_control_loss(loss), _control_names(concepts)]))
    births = _control_births(content, concepts)
    text = f"In {runs} {', and '.join(did)}." if did else f"There {_are(count)} to compare with."
    return Sentence(_control_lead(content, loss), f"{text}{births}")


def _are(count: int) -> str:
    return "is 1 control run" if count == 1 else f"are {count} control runs"


def _control_lead(content: Content, loss: LossStory | None) -> str:
    row = loss.row if loss else None
    if row is not None and row.controls:
        if row.learned:
            return "Control runs do not learn to predict."
        if not row.controlled:
            return "There are too few control runs to compare with."
        return "The loss did no better than in control runs."
    compared = [row for row in judged(content.rows) if row.controlled]
    if not compared:
        return "Nothing could be compared with control runs."
    beyond = sum(row.beyond for row in compared)
    many = "quantity" if len(compared) == 1 else "quantities"
    return f"{beyond:,} of {len(compared):,} {many} changed by more than in control runs."


def _control_loss(loss: LossStory | None) -> str:
    """Say from what to what the loss went in control runs."""
    ends = [pair for pair in loss.controls if all(map(math.isfinite, pair))] if loss else []
    if not ends:
        return ""
    first, lasts = mean([pair[0] for pair in ends]), sorted(pair[1] for pair in ends)
    low, high = (number(value, 0.1) for value in (lasts[0], lasts[-1]))
    reached = low if low == high else f"{low}–{high}"
    return f"the loss went from {number(first, 0.1)} to {reached}"


def _control_births(content: Content, concepts: Concepts | None) -> str:
    """Say how many concepts were born in control runs, which may be read at fewer steps."""
    if concepts is None or not concepts.born_controls:
        return ""
    count = number_range(list(concepts.born_controls))
    run, born = len(concepts.born), "concept was born" if count == "1" else "concepts were born"
    read, steps = concepts.control_steps, len(content.steps)
    if 0 < read < steps:
        seen = f"read at {read:,} of {steps:,} checkpoints, where fewer births can be seen"
        return f" {count} {born} in them, {seen}; {run:,} in the run."
    return f" {count} {born} in them; {run:,} in the run."


def _control_names(concepts: Concepts | None) -> str:
    if concepts is None or not concepts.named_controls:
        return ""
    totals = [total for _, total in concepts.named_controls if total is not None]
    counts = number_range([count for count, _ in concepts.named_controls])
    of = f" of {number_range(totals)}" if totals else ""
    return f"{counts}{of} concepts got a name"
