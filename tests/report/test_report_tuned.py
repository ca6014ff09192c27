"""The first screen of a fine-tuned run: what it gained and lost since its base, or what lacks."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from helpers import concept_trees as made
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.words.abilities import abilities_of
from ontogeny.words.content import read_content


def abilities(first, last):
    """A node of groups with accuracies at the first and last step, of 60 examples each."""
    names = list(first)
    ends = np.array([[first[n] for n in names], [last[n] for n in names]])
    steps = np.array(made.STEPS)
    accuracy = np.repeat(ends[1:], len(steps), axis=0)
    accuracy[0] = ends[0]
    change = ends[1] - ends[0]
    known = {
        "accuracy_first": ends[0],
        "accuracy_last": ends[1],
        "accuracy_last_low": ends[1] - 0.1,
        "accuracy_here_low": ends[1] - 0.1,
        "accuracy_last_high": ends[1] + 0.1,
        "p_chance": np.where(ends[1] > 0.65, 1e-6, 0.5),
        "above_chance_first": ends[0] > 0.65,
        "p_change": np.where(abs(change) > 0.2, 1e-5, 0.6),
        "change_low": change - 0.1,
        "change_high": change + 0.1,
        "above_from": np.full(len(names), float(steps[1])),
        "above_from_low": np.full(len(names), float(steps[0])),
    }
    data = {"accuracy": (("step", "group"), accuracy)}
    data |= {name: ("group", values) for name, values in known.items()}
    data |= {f"accuracy_{end}": data["accuracy"] for end in ("low", "high")}
    node = xr.Dataset(data, {"step": steps, "group": names})
    section = json.dumps({"title": "Pairs"})
    return node.assign_attrs(section=section, figures="[]", statements="[]", role="development")


def screen_of(nodes, based=True):
    tree = made.tree(nodes)
    tree.attrs["trajectory"] = json.dumps({"source": "folder"} | ({"base": True} if based else {}))
    return first_screen(read_content(tree))


def test_what_was_gained_and_lost_since_the_base_is_the_heading():
    first, last = (0.5, 0.9, 0.8), (0.9, 0.5, 0.8)
    names, since = ("tense", "plural", "order"), made.STEPS[1]
    groups = abilities(*(dict(zip(names, ends, strict=True)) for ends in (first, last)))
    screen = screen_of({"loss": made.loss_story(), "minimal-pairs": groups})
    assert screen.heading.startswith("The loss ") and "fell from" in screen.heading
    assert screen.heading.endswith(f"and it gained “tense”; but it lost “plural” by step {since}")
    first = screen.sentences[0]
    assert first.lead == "Of 3 abilities, 1 gained and 1 lost since the base."
    assert first.text.startswith(
        "“plural” went from 90 % to 50 % of its examples (change −50 to −30 points); from step "
        f"{since} on it is outside 90 to 90 %, its first interval."
    )


@pytest.mark.parametrize(
    ("ngrams", "liking", "by_words"),
    [(0.9, 1.0, True), (0.5, 1.0, False), (0.9, 0.5, False), (0.9, np.nan, True)],
)
def test_what_word_frequencies_answer_is_not_called_gained(ngrams, liking, by_words):
    groups = abilities({"tense": 0.5}, {"tense": 0.9})
    levels = {"accuracy_ngrams": ("group", [ngrams]), "liking": ("group", [liking])}
    screen = screen_of({"loss": made.loss_story(), "minimal-pairs": groups.assign(levels)})
    text = screen.sentences[0].text
    assert ("it gained “tense”" in screen.heading) != by_words
    assert ("“tense”, not shown to do so better than n-grams" in screen.heading) == by_words
    assert ("word frequencies may be all that was gained there" in text) == by_words
    assert screen.sentences[0].lead.startswith(f"Of 1 ability, {0 if by_words else 1} gained")


@pytest.mark.parametrize(
    ("course", "since"),
    [((9, 4, 9, 4, 3), 30), ((9, 9, 9, 9, 4), 40), ((9, 4, 4, 4, 4), 10), ((9, 9, 9, 9, 9), None)],
)
def test_an_ability_leaves_its_first_interval_for_good(course, since):
    groups = abilities({"tense": 0.9}, {"tense": course[-1] / 10}).isel(step=slice(5))
    steps, values = [0, 10, 20, 30, 40], np.array(course, dtype=float)[:, None] / 10
    ends = {"accuracy": values, "accuracy_low": values - 0.05, "accuracy_high": values + 0.05}
    groups = groups.assign({name: (("step", "group"), array) for name, array in ends.items()})
    (ability,) = abilities_of(
        [SimpleNamespace(dataset=groups.assign_coords(step=steps), id="pairs")]
    )
    assert ability.left_from == since if since else np.isnan(ability.left_from)


def test_a_loss_that_got_worse_is_something_lost():
    loss = made.loss_story(made.loss_story().loss.values[::-1].tolist(), learned=False)
    loss["better_sign"] = ("row", [-1.0])
    assert "; but" not in screen_of({"loss": loss}).heading
    assert screen_of({"loss": loss}).heading.startswith("The loss ")
    assert " rose from " in screen_of({"loss": loss}).heading


def test_where_nothing_is_shown_it_is_said_with_what_is_missing():
    loss = made.loss_story(learned=False, changed=False)
    screen = screen_of({"loss": loss})
    assert screen.heading == "Nothing is shown to be gained since the base"
    assert screen.sentences[0].lead == "What it lost of its base is not known:"
    assert "minimal-pairs" in screen.sentences[0].text
    groups = abilities({"tense": 0.5, "order": 0.8}, {"tense": 0.55, "order": 0.8})
    heading = screen_of({"loss": loss, "minimal-pairs": groups}).heading
    assert heading == "Nothing is shown to be gained or lost since the base"


@pytest.mark.parametrize("based", [True, False])
def test_only_a_run_with_a_base_is_read_beside_it(based):
    screen = screen_of({"loss": made.loss_story()}, based)
    assert ("since the base" in screen.heading or "fell from" in screen.heading) == based
    assert ("its base" in screen.sentences[0].lead) == based


@pytest.mark.parametrize(("based", "below"), [(True, 0.0), (True, 32.0), (False, 0.0)])
def test_what_the_base_could_already_is_not_said_of_the_run_alone(based, below):
    loss = made.loss_story(learned=False, changed=False, below=(below, below, below))
    ability = next(s for s in screen_of({"loss": loss}, based).sentences if "predict" in s.lead)
    alike = "Like its base (8.3), it predicts better than word frequencies (6.32)."
    assert (ability.lead == alike) == (based and not below)
    assert ("come from context" in f"{ability.lead} {ability.text}") != (based and not below)


def test_a_gain_of_a_trained_start_says_which_control_runs_would_judge_it():
    loss = made.loss_story(learned=False).assign(loss_trained_start=1.0)
    heading = screen_of({"loss": loss}).heading
    assert heading.startswith("Nothing is shown to be gained since the base; the loss ")
    assert heading.endswith("6 mirrored control runs would say whether that was learned")
