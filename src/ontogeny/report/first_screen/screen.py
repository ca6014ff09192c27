"""The first screen in words: what the run can do, what appeared in it, what its controls do."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...words.abilities import abilities_of, ability_sentences
from ...words.basis import unseen_start
from ...words.content import Content
from ...words.controls import began_trained, explained, names_against_controls
from ...words.formats import joined, number, plural, sentence_start, value_range
from ...words.landmarks import LossStory, read_loss
from ...words.loss import (
    Sentence,
    ability,
    control_loss,
    loss_heading,
    of_one_model,
    one_model_heading,
)
from ...words.order import order_sentence
from ...words.overview import left_out, overview, undecided
from ...words.rows import Row, counted_rows
from ...words.sections import best_sentences
from ...words.tuned import of_tuned
from ..concepts.lives import Concepts
from ..concepts.nodes import asked_for, failure, fitted_apart, read_concepts
from .numbers import Figure, four_numbers, numbers_of_one

MOST_NAMES = 3
MOST_WORDS = 110
_END = re.compile(r"(?<=[\w)”%]\.) (?=[A-Z\d“])")
_ENDED = "Every control run ended"


@dataclass(frozen=True)
class FirstScreen:
    """All that the first screen says, and the parts that it draws.

    Attributes
    ----------
    further
        What several runs show that has no place there.
    """

    heading: str
    sentences: tuple[Sentence, ...]
    numbers: tuple[Figure, ...]
    loss: LossStory | None
    concepts: Concepts | None
    further: tuple[str, ...] = ()


def first_screen(content: Content, running: bool = False) -> FirstScreen | None:
    """Return the first screen, none where the result brings a headline of its own or has neither.

    A comparison of runs and a recipe say themselves what they show; without a loss and without
    concepts the overview stands first.
    """
    loss, concepts = read_loss(content), read_concepts(content)
    claims = any(node.role == "claims" for node in content.nodes)
    if content.one_model and not claims:
        return _in_units(_of_one_model(content, loss), content.voice.fill)
    if content.headline or claims or (loss is None and concepts is None):
        return None
    sentences: tuple[Sentence, ...] = (
        _of_performance(content)
        if loss is None and _performance(content)
        else ability(loss, running),
        *([Sentence(*start)] if any(start := unseen_start(content)) else []),
        _able(content, _appeared(content, concepts)),
        _control(content, loss, concepts),
    )
    numbers = four_numbers(content, loss, concepts, running)
    title = loss_heading(loss, content.steps) + content.doubted if loss else ""
    title = title or _without_loss(content, concepts)
    if tuned := of_tuned(content):
        title, of_base = tuned
        sentences = (*of_base, *sentences)
    first, *others = sentences
    if title.startswith(first.lead.rstrip(".")) and first.text:  # which the heading says already
        lead, *rest = _END.split(first.text)
        sentences = (replace(first, lead=lead, text=" ".join(rest)), *others)
    screen = FirstScreen(title, shortened(title, sentences), numbers, loss, concepts)
    return _in_units(screen, content.voice.fill)


def _in_units(screen: FirstScreen | None, say: Callable[[str], str]) -> FirstScreen | None:
    """Return a screen in the units of its run."""
    if screen is None:
        return None
    lines = [replace(line, lead=say(line.lead), text=say(line.text)) for line in screen.sentences]
    numbers = [replace(one, words=say(one.words)) for one in screen.numbers]
    return replace(
        screen, heading=say(screen.heading), sentences=tuple(lines), numbers=tuple(numbers)
    )


def shortened(heading: str, sentences: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """Leave out the last sentences of the longest texts, until a minute's reading remains.

    The sections say what is left out here. The first sentence of a text stays; above three texts,
    those before the last go whole.

    Examples
    --------
    >>> long = Sentence("It learned.", "Half of it by step 5. Then" + " more" * 120 + ".")
    >>> shortened("It learned", [long])[0].text
    'Half of it by step 5.'
    """
    lines = list(sentences)
    while len(" ".join([heading, *(f"{s.lead} {s.text}" for s in lines)]).split()) > MOST_WORDS:
        parts = [_END.split(line.text) for line in lines]
        longest = max(range(len(lines)), key=lambda i: (len(parts[i]) > 1) * len(lines[i].text))
        if len(parts[longest]) < 2 and len(lines) <= 3:
            break
        if len(parts[longest]) < 2:
            del lines[-2]
            continue
        lines[longest] = replace(lines[longest], text=" ".join(parts[longest][:-1]))
    return tuple(lines)


def _of_one_model(content: Content, loss: LossStory | None) -> FirstScreen | None:
    """Return what was measured of a single checkpoint: the loss, and a sentence of each node."""
    sentences = [Sentence(f"{title}:", text) for title, text in best_sentences(content).items()]
    if texts := ability_sentences(abilities_of(content.nodes), content.steps):
        sentences.insert(0, Sentence(texts[0], " ".join(texts[1:])))
    if loss is None and not sentences:
        return None
    ahead = [of_one_model(loss)] if loss else []
    title = one_model_heading(loss) if loss else "One model; its loss was not measured"
    title += content.doubted
    short = shortened(title, (*ahead, *sentences)[:4])  # of six, scores lost their nulls
    return FirstScreen(title, short, numbers_of_one(content, loss), None, None)


def _without_loss(content: Content, concepts: Concepts | None) -> str:
    if concepts is not None and concepts.with_name and not _performance(content):
        return f"{_named_words(concepts)}; the loss was not measured{content.doubted}"
    return overview(content).heading


def _performance(content: Content) -> bool:
    """Return whether something else than a loss says what the model can do, as an accuracy."""
    return any(row.can_learn for row in counted_rows(content.rows))


def _of_performance(content: Content) -> Sentence:
    lead, _, rest = overview(content).lead.partition("; ")
    return Sentence(f"{lead.rstrip('.')}.", sentence_start(rest) if rest else "")


# What it can do, and what appeared.


def _able(content: Content, appeared: Sentence) -> Sentence:
    """Return the second sentence: abilities before concepts, where any group is above chance."""
    abilities = abilities_of(content.nodes)
    if not any(group.above for group in abilities):
        return appeared
    lead, *rest = ability_sentences(abilities, content.steps)
    return Sentence(lead, f"{rest[0]} {appeared.lead}")


def _appeared(content: Content, concepts: Concepts | None) -> Sentence:
    """Say which concepts appeared, or how many other quantities changed."""
    if concepts is None:
        why = ""
        if asked_for(content):
            reason = failure(content)
            what = "No lives" if reason.startswith("lives") else "Concepts could not be computed"
            why = what + (f": {reason.rstrip('.')}." if reason else ".")
        return _other_rows(content, why)
    total = plural(len(concepts.every), "concept")
    if not concepts.every:
        count = len(concepts.apart)
        apart = f" and is found by both halves of the texts; {count:,} by one fit alone"
        apart = apart if count else ""
        return Sentence(
            "No concept was found.",
            f"None of {concepts.latents:,} latents can be read from two checkpoints{apart}.",
        )
    if concepts.named is None or concepts.unnamed:
        because = concepts.unnamed.rstrip(".")
        why = f"No name could be given: {because}. " if because else ""
        readable = f"{len(concepts.every):,} can be read from single checkpoints"
        text = f"{why}Of {concepts.latents:,} latents, {readable}."
        return Sentence(f"{sentence_start(total)} can be read; none was named.", text)
    if not concepts.named:
        lead = "No concept is sharper than in the untrained model."
        return Sentence(lead, f"{total} can be read, and none got a name.")
    controls = concepts.named_controls
    if controls and max(controls)[0] >= concepts.named:
        lead = "No more concepts got a name than in control runs."
        return Sentence(
            lead, f"{_named_words(concepts)}{_in_controls(concepts)}. {_listed(concepts)}"
        )
    if not controls:
        lead = f"{_named_words(concepts)}; motion alone may give as many."
        return Sentence(lead, _listed(concepts))
    lead = f"{_named_words(concepts)}{_in_controls(concepts)}."
    means = names_against_controls(concepts.named, len(concepts.every), controls)
    share = f"That is {means}. " if "share" in means else _in_layers(concepts)
    return Sentence(lead, f"{share}{_listed(concepts)}")


def _in_layers(concepts: Concepts) -> str:
    """Say in which layers no larger share got a name than in some control run."""
    data = concepts.data
    if not {"named", "n_concepts", "named_control", "n_concepts_control"} <= set(data):
        return ""
    share = data["named_control"] / data["n_concepts_control"]
    alike = (data["named"] / data["n_concepts"] <= share.max("run")).values
    where = {c.short_layer: None for c in concepts.every if alike[c.place[0]]}
    listed = joined(list(where)) if len(where) <= MOST_NAMES else f"{len(where)} layers"
    return f"In {listed} the share is no larger. " if where else ""


def _named_words(concepts: Concepts) -> str:
    return f"{concepts.named:,} of {plural(len(concepts.every), 'concept')} got a name"


def _in_controls(concepts: Concepts) -> str:
    totals = [total for _, total in concepts.named_controls if total is not None]
    counts = value_range([count for count, _ in concepts.named_controls], "{:,}".format)
    of = f" of {value_range(totals, '{:,}'.format)}" if totals else ""
    return f" (in controls {counts}{of})"


def _listed(concepts: Concepts) -> str:
    """Say the first names, each once: classes of words before tokens."""
    names = list(dict.fromkeys(concept.name for concept in concepts.with_name))
    quoted = joined([f"“{name}”" for name in names[:MOST_NAMES]])
    if len(names) > MOST_NAMES:
        return f"Among them {quoted}."
    if len(names) == 1:
        return f"{'Its name is' if concepts.named == 1 else 'Each is named'} {quoted}."
    return f"The names are {quoted}."


def _other_rows(content: Content, why: str) -> Sentence:
    """Say how many other quantities changed, of a run without concepts."""
    every = counted_rows([r for n in content.nodes if n.role != "track" for r in n.rows])
    rows = [row for row in every if row.judgeable]
    apart = "Concepts were fitted to each checkpoint by itself, so that none has a birth."
    has_concepts = any("concept" in node.path for node in content.nodes)
    why = why or (
        apart if fitted_apart(content) else "No concepts were fitted." * (not has_concepts)
    )
    if len(content.steps) < content.levels.least_steps or not rows:
        judged = any(row.judgeable for row in content.rows)
        return Sentence(why, f"No {'other ' * judged}quantity could be judged.")
    controlled = [row for row in rows if row.controlled]
    counted, past = (controlled, "beyond") if controlled else (rows, "changed")
    some = sum(getattr(row, past) or row.learned for row in counted)
    alone = len(counted) == 1
    further = f"{plural(len(counted), 'further row')} of the chart"
    motion = f"changed beyond {'its' if alone else 'their'} motion"
    ending = motion if controlled else "changed above chance and noise"
    lead = f"{some:,} of {further} {ending}"
    if not some:
        lead = f"{further} {'is' if alone else 'are'} not shown to have {ending}"
    return Sentence(f"{lead}{left_out(every, counted)}.", f"{order_sentence(rows)} {why}".strip())


# What the controls do.


def _control(content: Content, loss: LossStory | None, concepts: Concepts | None) -> Sentence:
    """Say what the control runs do."""
    if not content.controls:
        lead, text = "No control was run:", "changes below may be mere motion."
        if loss and loss.row and loss.row.learned:
            text = f"other {text}"
        return Sentence(lead, text if len(content.steps) > 1 else "what is below may be chance.")
    row, began = loss.row if loss else None, began_trained(n.dataset for n in content.nodes)
    lead = _control_lead(content, row, began)
    went = "" if lead.startswith(_ENDED) else sentence_start(control_loss(loss))
    open_question = undecided(row, began) if row and not row.learned else ""
    parts = (open_question, explained(content), f"{went}." if went else "")
    return Sentence(lead, " ".join(filter(None, parts)))


def _control_lead(content: Content, row: Row | None, began: bool) -> str:
    if row is not None and row.controls:
        if row.learned:
            return "Control runs do not learn to predict."
        if not row.controlled and not began:
            return "There are too few control runs to compare with."
        ends = [run.last_value for run in row.nulls if math.isfinite(run.last_value)]
        above, below = (min(ends) - row.last_value, row.last_value - max(ends)) if ends else (0, 0)
        if (apart := above if row.outside else below) > 0:
            last = number(row.last_value, min(0.1, apart))
            of_controls = value_range(ends, lambda end: number(end, min(0.1, apart)))
            side = "above" if row.outside else "below"
            return f"{_ENDED} {side} the run ({of_controls} against {last})."
        if row.outside:
            return "In no control run the loss improved as much."
        return "The loss is not shown to do better than in control runs."
    compared = [row for row in counted_rows(content.rows) if row.judgeable and row.controlled]
    if not compared:
        return "Nothing could be compared with control runs."
    beyond = sum(row.beyond for row in compared)
    of_all = f"{beyond:,} of {plural(len(compared), 'row')} of the chart"
    return f"{of_all} changed by more than in control runs."
