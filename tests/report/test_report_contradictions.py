"""No two sentences of the first screen and the overview contradict each other."""

import json
import re

import numpy as np
import pytest
import xarray as xr
from ontogeny.words.overview import overview

from helpers.concept_trees import STEPS, joint_concepts, learned, loss_story, predictions, tree
from ontogeny.figures import Section
from ontogeny.observables import LabelAccuracy, MinimalPairs
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.summary import with_verdicts
from ontogeny.summary.controls import with_controls
from ontogeny.summary.summarise import summarise
from ontogeny.words.content import read_content

NEED = "(?!, which move as far in random directions, need several checkpoints)"  # says why none
PAIRS = [
    (
        r"(?<!anything )was learned\b",
        r"[Nn]othing (here )?(was|is shown to be) learned|[Nn]ot shown (that|whether)",
    ),
    (r"The loss fell\b", r"The loss rose|The loss did not change"),
    (r"None of them was seen to be born", r"; [1-9][\d,]* in the run"),
    (r"No control was run", r"control run \(|Every control run ended|Control runs do not"),
    (r"loss was not measured", r"[Tt]he loss (fell|rose|is|was learned)"),
    (r"[Nn]othing here was learned", r"loss was not measured|Learning was not measured"),
    (
        r"never below [\d.]+, the loss of word frequencies",
        r"(?<!never )(?<!surely )[Bb]etter than word frequencies",
    ),
    (r"got a name", r"No name could be given|none was named"),
    (r"One model", rf"[Cc]ontrol runs?\b{NEED}|[Tt]oo few checkpoints|was learned|\b(fell|rose)\b"),
    (r"no initialisation", r"beyond (its|their) motion|more than motion gives|untrained"),
    (r"since when", r"first checkpoint: better than|at every (step|checkpoint)"),
    (r"more of the context", r"(never|not stay) below [\d.]+, the loss of bigrams"),
    (r"more than in any control run", r"No more concepts got a name|not a larger share"),
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
    return tree({"loss": loss_story().assign(loss_bigram=3.03, loss_own_bigram=5.5, **lines)})


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
            **{key: ("step", np.full(len(steps), value)) for key, value in variables.items()},
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
    return tree({"loss": loss_story(), "joint-concepts": joint_concepts(tokenizer=False)})


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
        {"loss": loss_story(), "joint-concepts": joint_concepts(named=4, control=(6, 8))}
    ),
}


def words_of(result):
    content = read_content(result)
    screen, said = first_screen(content), overview(content)
    parts = [said.heading, said.lead, *said.details]
    if screen is not None:
        parts += [screen.heading, *(f"{s.lead} {s.text}" for s in screen.sentences)]
        parts += [f"{number.value} {number.words}" for number in screen.numbers]
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


def test_context_and_bigrams_that_predict_better_stand_beside_each_other():
    words = words_of(worse_than_bigrams())
    assert "then in part which token follows which (half by step 64), then some context" in words
    assert "never below 3.03, the loss of bigrams. What it gains from context is less than" in words


def test_what_holds_at_every_step_has_no_unknown_beginning_and_is_said_once():
    words = words_of(KINDS["known from the start"]())
    assert (
        "better than word frequencies at every checkpoint; no trend of its loss can be told"
        in words
    )
    assert "first checkpoint: better than word frequencies" in words
    assert words.count("It predicts better than word frequencies") == 1
    assert "Its loss was lowest, 3.63, at step 1" in words


def test_a_trained_start_is_said():
    assert "The first checkpoint is no initialisation" in words_of(started_trained())


def test_labels_and_pairs_are_called_what_they_are():
    labels = words_of(KINDS["labels"]())
    assert "Accuracy was learned" in labels and "The accuracy rose from" in labels
    assert "loss was not measured" not in labels
    pairs = words_of(KINDS["pairs"]())
    assert "The agreement rose from" in pairs and "No control" not in pairs and " text" not in pairs


@pytest.mark.parametrize(("unit", "said"), [("character", "character"), ("token", "token")])
def test_a_token_that_is_no_word_is_not_called_one(unit, said):
    result = learned()
    result.attrs["inputs"] = json.dumps([{"name": "text", "token_unit": unit}])
    content = read_content(result)
    words = words_of(result) + " ".join(
        [*(n.words for n in first_screen(content).numbers), *content.nodes[0].statements]
    )
    assert f"It learned {said} frequencies first" in words
    assert f"better than {said} frequencies" in words and "word frequencies" not in words


@pytest.mark.parametrize("controls", [("turned 0", "turned 1"), ("turned 0", "nothing")])
def test_a_page_says_whether_a_control_was_trained(controls):
    node = loss_story(learned=False, beyond=True, controls=(8.4, 8.7))
    result = tree({"loss": node}, controls=controls)
    stronger = "--set controls.folders.nothing=FOLDER" in words_of(result)
    assert stronger == ("nothing" not in controls)


def test_one_checkpoint_has_no_course():
    words = words_of(alone())
    assert words.startswith("One model") and "no time axis" in words
