"""No two sentences of the first screen and the overview contradict each other."""

import json
import re
from functools import cache

import numpy as np
import pytest
import xarray as xr

from helpers.concept_trees import (
    STEPS,
    joint_concepts,
    learned,
    loss_story,
    predictions,
    tree,
)
from ontogeny.claims import Certainty, Kind
from ontogeny.figures import Section
from ontogeny.observables import LabelAccuracy, MinimalPairs
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.report.page.html import render_page
from ontogeny.summary import with_verdicts
from ontogeny.summary.controls import with_controls
from ontogeny.summary.summarise import summarise
from ontogeny.words.basis import basis
from ontogeny.words.content import read_content
from ontogeny.words.sections import section_sentences

PAIRS = [
    (
        r"(?<!hether )\b[Ll]oss improved by learning\b(?! is)",
        r"Whether loss improved by learning",
    ),
    (r"[Ll]oss fell\b", r"[Ll]oss rose|Whether loss changed is open"),
    (
        r"no control run\b|not tested against controls",
        r"[Cc]ontrol runs? (move|are trained|differ)",
    ),
    (r"is below that of word frequencies", r"not shown below that of word frequencies"),
    (r"ha(ve|s) a name", r"none has a name|none was named"),
    (
        r"One model",
        r"[Cc]ontrol runs? move|too few (checkpoints|to tell)|improved by learning|\b(fell|rose)\b",
    ),
    (r"no initialisation", r"beyond controls(?! is)|untrained"),
    (r"It uses context", r"Use of context is not shown"),
    (r"It predicts better than bigrams", r"not shown below that of bigrams"),
]
SMALL = 6.1132 - 0.0048 * (1 - np.exp(-np.asarray(STEPS) / 40))


STARTED = (3.67, 3.63, 3.7, 3.74)  # of a fine-tuning: below all lines at every step


def worse_than_bigrams():
    """A short run uses context beyond the token before, though bigrams would predict better."""
    never = dict.fromkeys(("", "_low", "_high"), np.nan)
    sure = {"": 64.0, "_low": 32.0, "_high": 64.0}
    last = {"": 256.0, "_low": 128.0, "_high": 256.0}
    lines = {
        **{f"loss_below_bigram{end}": value for end, value in never.items()},
        **{f"loss_below_own_bigram{end}": value for end, value in sure.items()},
        **{f"loss_half_before{end}": value for end, value in sure.items()},
        **{f"loss_half_context{end}": value for end, value in last.items()},
    }
    return tree(
        {"loss": loss_story().assign(loss_bigram=3.03, loss_own_bigram=5.5, **lines)}
    )


def falling(steps):
    return 8.3 - 3.3 * (1 - np.exp(-np.asarray(steps) / 40))


def started_trained():
    node = loss_story(learned=False, beyond=False)
    unjudged = ("row", [np.nan])  # no control that is made of motion judges such a run
    return tree({"loss": node.assign(loss_trained_start=1.0, p_control=unjudged)})


def shares(observable, group="", **variables):
    """A share of right answers that rises, as each of 300 texts has it, beside turned runs."""
    rng, steps, name = np.random.default_rng(0), np.asarray(STEPS), "accuracy"
    rise = 1 - np.exp(-steps / 40)

    def run(gain):
        of_text = (rng.random((1, 300)) < (0.5 + gain * rise)[:, None]).astype(float)
        values = {
            name: ("step", of_text.mean(1)),
            f"{name}_of_text": (("step", "text"), of_text),
            f"{name}_weights": (("step", "text"), np.ones_like(of_text)),
            **{
                key: ("step", np.full(len(steps), value))
                for key, value in variables.items()
            },
        }
        data = xr.Dataset(values, {"step": steps})
        return data.expand_dims(group=[group]) if group else data

    quantities = [q for q in observable.quantities if q.name == name]
    beside = {f"turned {k}": run(gain) for k, gain in enumerate((0.01, -0.01, 0.0))}
    data = with_controls(run(0.4), beside, quantities)
    node = summarise(data, quantities, Section("Answers", "."))
    return tree(with_verdicts({"answers": node}))


def alone():
    """One checkpoint of a run, with what a study of it measures."""
    last = loss_story(falling(STEPS[-1:]), steps=STEPS[-1:], controls=(), learned=False)
    return tree({"loss": last}, controls=(), steps=STEPS[-1:])


def without_tokenizer():
    return tree(
        {"loss": loss_story(), "joint-concepts": joint_concepts(tokenizer=False)}
    )


KINDS = {
    "learned": learned,
    "no control": lambda: tree({"loss": loss_story(controls=())}, controls=()),
    "no loss": lambda: tree(
        {"joint-concepts": joint_concepts(), "predictions": predictions()}
    ),
    "no lines": lambda: tree({"loss": loss_story(lines=False)}),
    "too few steps": lambda: tree(
        {
            "loss": loss_story(
                falling(STEPS[:3]), steps=STEPS[:3], learned=False, changed=False
            )
        },
        steps=STEPS[:3],
    ),
    "no step 0": lambda: tree(
        {"loss": loss_story(falling(STEPS[1:]), steps=STEPS[1:])}, steps=STEPS[1:]
    ),
    "trained start": started_trained,
    "labels": lambda: shares(LabelAccuracy(), accuracy_majority=0.5),
    "pairs": lambda: shares(MinimalPairs(), "agreement", accuracy_chance=0.5),
    "one checkpoint": alone,
    "no tokenizer": without_tokenizer,
    "not learned": lambda: tree(
        {"loss": loss_story(learned=False, below=(np.nan,) * 3, context=False)}
    ),
    "a small change": lambda: tree({"loss": loss_story(SMALL, context=False)}),
    "known from the start": lambda: tree(
        {
            "loss": loss_story(
                STARTED, steps=STEPS[:4], learned=False, changed=False, below=(0,) * 3
            )
        },
        steps=STEPS[:4],
    ),
    "worse than bigrams": worse_than_bigrams,
    "as many names as controls": lambda: tree(
        {
            "loss": loss_story(),
            "joint-concepts": joint_concepts(named=4, control=(6, 8)),
        }
    ),
}


@cache
def content_of(kind):
    """Each result is made and read once, and no test changes it."""
    return read_content(KINDS[kind]())


def words_of(result):
    return words_in(read_content(result))


def words_in(content):
    screen = first_screen(content)
    parts = list(basis(content))
    if screen is not None:
        parts += [screen.heading, *(f"{s.lead} {s.text}" for s in screen.sentences)]
        parts += [f"{number.value} {number.words}" for number in screen.numbers]
    parts += [
        one.text for node in content.nodes for one in section_sentences(content, node)
    ]
    return " \n".join(parts)


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_sentences_contradict_each_other(kind):
    words = words_in(content_of(kind))
    for one, other in PAIRS:
        both = re.search(one, words), re.search(other, words)
        assert not all(both), f"{both[0][0]} / {both[1][0]}\n{words}"


def test_a_contradiction_would_be_seen():
    words = (
        "Loss improved by learning: from 8 to 5. "
        "Whether loss improved by learning is open: too few texts."
    )
    assert all(re.search(pattern, words) for pattern in PAIRS[0])


@pytest.mark.parametrize("kind", KINDS)
def test_headings_and_leads_are_short_and_no_tile_is_zero(kind):
    screen = first_screen(content_of(kind))
    if screen is None:
        return
    assert len(screen.heading.split()) <= 12, screen.heading
    assert [line.lead for line in screen.sentences if len(line.lead.split()) > 20] == []
    assert all(line.link for line in screen.sentences), screen.sentences
    assert all(
        each.link and each.value not in ("0", "–", "-") for each in screen.numbers
    )
    assert len(screen.numbers) <= 4 and len(screen.sentences) <= 5


DOUBT = re.compile(r"\bis open\b|\bnot shown\b|\bnot tested\b")


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_is_sure_is_bold(kind):
    # "8 of 8 other measures changed; beyond controls is open" was bold on the page of a walk.
    content = content_of(kind)
    screen = first_screen(content)
    lines = () if screen is None else screen.sentences
    assert [line.lead for line in lines if line.sure and DOUBT.search(line.lead)] == []
    plain = sum(not line.sure for line in lines)
    assert render_page(content).count('<b class="unsure">') == plain


def test_names_that_control_runs_have_as_well_are_not_bold():
    screen = first_screen(content_of("as many names as controls"))
    (line,) = [each for each in screen.sentences if "a name" in each.lead]
    assert not line.sure


def claims_of(name, kind):
    return {c.subject.label: c for c in content_of(name).claims if c.kind is kind}


def test_context_and_bigrams_that_predict_better_stand_beside_each_other():
    passes = claims_of("worse than bigrams", Kind.PASSES)
    sure = {
        label for label, claim in passes.items() if claim.certainty is Certainty.SURE
    }
    assert "its own bigrams" in sure and "bigrams" not in sure
    assert "It predicts better than bigrams" not in words_in(
        content_of("worse than bigrams")
    )


def test_what_holds_at_every_step_is_claimed_from_the_first_on():
    kind = "known from the start"
    assert claims_of(kind, Kind.PASSES)["word frequencies"].since == 0
    assert "at step 1" in words_in(content_of(kind)), "where its loss was lowest"


def test_a_trained_start_is_said():
    assert "The first checkpoint is no initialisation" in words_in(
        content_of("trained start")
    )


def test_labels_and_pairs_are_called_what_they_are():
    labels = words_in(content_of("labels"))
    assert "Accuracy improved by learning" in labels and "loss" not in labels.lower()
    pairs = words_in(content_of("pairs"))
    assert (
        "Agreement improved by learning" in pairs
        and "No control" not in pairs
        and " text" not in pairs
    )


@pytest.mark.parametrize(
    ("unit", "said"), [("character", "character"), ("token", "token")]
)
def test_a_token_that_is_no_word_is_not_called_one(unit, said):
    result = learned()
    result.attrs["inputs"] = json.dumps([{"name": "text", "token_unit": unit}])
    words = words_of(result)
    assert f"It learned {said} frequencies first" in words
    assert f"below {said} frequencies" in words and "word frequencies" not in words


@pytest.mark.parametrize(
    "controls", [("turned 0", "turned 1"), ("turned 0", "nothing")]
)
def test_a_page_says_whether_a_control_was_trained(controls):
    node = loss_story(learned=False, beyond=True, controls=(8.4, 8.7))
    result = tree({"loss": node}, controls=controls)
    stronger = "--set controls.folders.nothing=FOLDER" in words_of(result)
    assert stronger == ("nothing" not in controls)


def test_one_checkpoint_has_no_course():
    words = words_in(content_of("one checkpoint"))
    assert "fell" not in words and "rose" not in words and "checkpoints" not in words
