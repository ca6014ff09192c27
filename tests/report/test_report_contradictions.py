"""No two sentences of the first screen and the overview contradict each other."""

import re

import numpy as np
import pytest

from helpers.concept_trees import STEPS, joint_concepts, learned, loss_story, predictions, tree
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.words.content import read_content
from ontogeny.words.overview import overview

PAIRS = [
    (
        r"(?<!anything )was learned\b",
        r"[Nn]othing (here )?(was|is shown to be) learned|[Nn]ot shown (that|whether)",
    ),
    (r"The loss fell\b", r"The loss rose|The loss did not change"),
    (r"None of them was seen to be born", r"; [1-9][\d,]* in the run"),
    (r"No control was run", r"control run \(|In every control run|Control runs do not"),
    (r"loss was not measured", r"[Tt]he loss (fell|rose|is|was learned)"),
    (r"[Nn]othing here was learned", r"loss was not measured|Learning was not measured"),
    (r"never below [\d.]+, the loss of word frequencies", r"[Bb]etter than word frequencies"),
    (r"got a name", r"No name could be given|none was named"),
]
SMALL = 6.1132 - 0.0048 * (1 - np.exp(-np.asarray(STEPS) / 40))


def falling(steps):
    return 8.3 - 3.3 * (1 - np.exp(-np.asarray(steps) / 40))


def started_trained():
    node = loss_story(learned=False, beyond=False)
    return tree({"loss": node.assign(loss_trained_start=1.0)})


KINDS = {
    "learned": learned,
    "no control": lambda: tree({"loss": loss_story(controls=())}, controls=()),
    "no loss": lambda: tree({"joint-concepts": joint_concepts(), "predictions": predictions()}),
    "no lines": lambda: tree({"loss": loss_story(lines=False)}),
    "too few steps": lambda: tree(
        {"loss": loss_story(falling(STEPS[:3]), steps=STEPS[:3], learned=False, changed=False)},
        steps=STEPS[:3],
    ),
    "no step 0": lambda: tree(
        {"loss": loss_story(falling(STEPS[1:]), steps=STEPS[1:])}, steps=STEPS[1:]
    ),
    "trained start": started_trained,
    "not learned": lambda: tree(
        {"loss": loss_story(learned=False, below=(np.nan,) * 3, context=False)}
    ),
    "a small change": lambda: tree({"loss": loss_story(SMALL, context=False)}),
}


def words_of(result):
    content = read_content(result)
    screen, said = first_screen(content), overview(content)
    parts = [said.heading, said.lead, *said.details]
    if screen is not None:
        parts += [screen.heading, *(f"{s.lead} {s.text}" for s in screen.sentences)]
    return " \n".join(parts)


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_sentences_contradict_each_other(kind):
    words = words_of(KINDS[kind]())
    for one, other in PAIRS:
        both = re.search(one, words), re.search(other, words)
        assert not all(both), f"{both[0][0]} / {both[1][0]}\n{words}"


def test_a_contradiction_would_be_seen():
    words = "None of them was seen to be born during the run. 2 were born in them; 5 in the run."
    assert all(re.search(pattern, words) for pattern in PAIRS[2])


def test_a_trained_start_is_said():
    assert "The first checkpoint is no initialisation" in words_of(started_trained())
