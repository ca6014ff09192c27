"""The first screen of a fine-tuned run: what it gained and lost since its base, or what lacks."""

import json

import numpy as np
import pytest
import xarray as xr

from helpers import concept_trees as made
from ontogeny.claims import Kind, Reason
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
    return node.assign_attrs(
        section=section, figures="[]", statements="[]", role="development"
    )


def screen_of(nodes, based=True):
    tree = made.tree(nodes)
    tree.attrs["trajectory"] = json.dumps(
        {"source": "folder"} | ({"base": True} if based else {})
    )
    return first_screen(read_content(tree))


def test_what_was_gained_and_lost_since_the_base_is_the_heading():
    first, last = (0.5, 0.9, 0.8), (0.9, 0.5, 0.8)
    names, since = ("tense", "plural", "order"), made.STEPS[1]
    groups = abilities(*(dict(zip(names, ends, strict=True)) for ends in (first, last)))
    screen = screen_of({"loss": made.loss_story(), "minimal-pairs": groups})
    assert screen.heading == "It gained “tense”; it lost “plural”"
    (line,) = [line for line in screen.sentences if "gained" in line.lead + line.text]
    told = f"{line.lead} {line.text}"
    assert f"“plural” from step {since}: 90 % to 50 %" in told
    assert f"“tense” from step {since}: 50 % to 90 %" in told
    assert line.link == "#abilities"


@pytest.mark.parametrize("based", [False, True])
def test_what_was_gained_leads_where_the_change_of_loss_is_open(based):
    """Of three checkpoints it said "too few to tell a change", above a gain from 57 to 93 %."""
    groups = abilities({"tense": 0.5, "order": 0.8}, {"tense": 0.9, "order": 0.8})
    loss = made.loss_story(learned=False, changed=False, controls=())
    screen = screen_of({"loss": loss, "minimal-pairs": groups}, based=based)
    assert screen.heading == "It gained “tense”"


def test_many_gains_with_long_names_are_counted_in_a_short_heading():
    names = [f"the agreement of number {k} across a clause" for k in range(6)]
    groups = abilities(dict.fromkeys(names, 0.5), dict.fromkeys(names, 0.9))
    heading = screen_of({"loss": made.loss_story(), "minimal-pairs": groups}).heading
    assert len(heading.split()) <= 12 and "it gained 6 abilities" in heading


@pytest.mark.parametrize(
    ("ngrams", "liking", "by_words"),
    [(0.9, 1.0, True), (0.5, 1.0, False), (0.9, 0.5, False), (0.9, np.nan, True)],
)
def test_what_word_frequencies_answer_is_not_called_gained(ngrams, liking, by_words):
    groups = abilities({"tense": 0.5}, {"tense": 0.9})
    levels = {"accuracy_ngrams": ("group", [ngrams]), "liking": ("group", [liking])}
    tree = made.tree(
        {"loss": made.loss_story(), "minimal-pairs": groups.assign(levels)}
    )
    (claim,) = [c for c in read_content(tree).claims if c.kind is Kind.GAINED]
    assert claim.reason is (Reason.WORD_COUNTS if by_words else None)
    screen = screen_of(
        {"loss": made.loss_story(), "minimal-pairs": groups.assign(levels)}
    )
    assert ("gained “tense”" in screen.heading) != by_words


@pytest.mark.parametrize(
    ("course", "since"),
    [
        ((9, 4, 9, 4, 3), 30),
        ((9, 9, 9, 9, 4), 40),
        ((9, 4, 4, 4, 4), 10),
        ((9, 9, 9, 9, 9), None),
    ],
)
def test_an_ability_leaves_its_first_interval_for_good(course, since):
    groups = abilities({"tense": 0.9}, {"tense": course[-1] / 10}).isel(step=slice(5))
    steps, values = [0, 10, 20, 30, 40], np.array(course, dtype=float)[:, None] / 10
    ends = {
        "accuracy": values,
        "accuracy_low": values - 0.05,
        "accuracy_high": values + 0.05,
    }
    groups = groups.assign(
        {name: (("step", "group"), array) for name, array in ends.items()}
    )
    (ability,) = abilities_of({"pairs": groups.assign_coords(step=steps)})
    assert ability.left_from == since if since else np.isnan(ability.left_from)


def test_a_loss_that_got_worse_is_said_to_rise():
    loss = made.loss_story(made.loss_story().loss.values[::-1].tolist(), learned=False)
    loss["better_sign"] = ("row", [-1.0])
    screen = screen_of({"loss": loss})
    assert screen.heading.startswith("Loss rose") and "gained" not in screen.heading


def test_where_nothing_is_shown_no_gain_or_loss_is_said():
    loss = made.loss_story(learned=False, changed=False)
    screen = screen_of({"loss": loss})
    assert (
        "gained" not in screen.heading and "improved by learning:" not in screen.heading
    )
    groups = abilities({"tense": 0.5, "order": 0.8}, {"tense": 0.55, "order": 0.8})
    heading = screen_of({"loss": loss, "minimal-pairs": groups}).heading
    assert "gained “" not in heading and "lost “" not in heading
    alone = screen_of({"minimal-pairs": groups}).heading
    assert alone == "Nothing is shown to be gained or lost since the base"


@pytest.mark.parametrize("based", [True, False])
def test_what_the_base_could_already_is_no_tile_of_the_run(based):
    loss = made.loss_story(learned=False, changed=False, below=(0.0, 0.0, 0.0))
    screen = screen_of({"loss": loss}, based)
    assert not any("word frequencies" in each.words for each in screen.numbers)


def test_a_gain_of_a_trained_start_is_open_and_says_so():
    loss = made.loss_story(learned=False, beyond=False).assign(loss_trained_start=1.0)
    screen = screen_of({"loss": loss})
    assert "learning is open" in screen.heading or "open" in screen.sentences[0].lead
    assert "improved by learning:" not in f"{screen.heading} {screen.sentences[0].lead}"
