"""The first screen: every sentence is borne out by the result; none is said where none is."""

import itertools
import json
import re

import numpy as np
import pytest
import xarray as xr

from helpers import concept_trees as made
from helpers import report_examples as examples
from helpers.report_page import Page
from ontogeny.claims import Certainty, Kind, Reason
from ontogeny.features.predictions.loss_claims import claims_of_loss
from ontogeny.report.concepts.lives import line_names
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.report.page.html import render_page
from ontogeny.words.content import read_content

RISING = np.linspace(8.3, 8.7, len(made.STEPS))
NEVER = (np.nan, np.nan, np.nan)


def first(tree):
    return first_screen(read_content(tree))


def said(screen):
    parts = [f"{s.lead} {s.text}" for s in screen.sentences]
    return " ".join([screen.heading, *parts])


def numbers(screen):
    return {each.words: each.value for each in screen.numbers}


def claimed(tree, *kinds):
    """What is surely claimed, of some kinds, by label."""
    claims = read_content(tree).claims
    sure = [c for c in claims if c.kind in kinds and c.certainty is Certainty.SURE]
    return {c.subject.label: c for c in sure}


def of_concepts(screen):
    (line,) = [line for line in screen.sentences if "oncept" in line.lead]
    return line


def test_a_run_that_learned_is_told_in_the_order_of_its_landmarks():
    screen = first(made.learned())
    assert screen.heading == "It learned word frequencies first, then context"
    loss, appeared, control = screen.sentences
    assert all(
        number in loss.lead for number in ("8.30", "5.00", "controls +0.1 to +0.4")
    )
    assert "predictions have a loss of 5.7" in loss.text and loss.direction == "falls"
    assert appeared.lead == "18 of 22 concepts have a name (controls 2–4 of 22)."
    assert control.lead == "3 control runs move as far in random directions."
    assert numbers(screen) == {
        "loss, was 8.30": "5.00",
        "concepts born, 8 comparable (controls 0–2)": "18",
        "step: below word frequencies": "16–32",
    }


def test_one_control_run_is_spoken_of_in_the_singular():
    alone = made.tree({"loss": made.loss_story(controls=(8.4,))}, controls=["turned 0"])
    leads = [sentence.lead for sentence in first(alone).sentences]
    assert "1 control run moves as far in random directions." in leads


def test_names_that_are_said_are_those_of_the_sharpest_concepts():
    tree = made.learned()
    data = tree["joint-concepts"].to_dataset()
    order = np.argsort(-data.concentration.values, axis=None)
    wanted = [n for n in data.name.values.ravel()[order] if n]
    text = of_concepts(first(tree)).text
    assert re.findall(r"“(.+?)”", text) == list(dict.fromkeys(wanted))[:3]


def test_a_run_without_step_0_says_what_cannot_be_seen():
    tree = made.learned()
    assert not any("not seen" in sentence.lead for sentence in first(tree).sentences)
    late = {
        name: node.dataset.isel(step=slice(2, None))
        for name, node in tree.children.items()
    }
    late = made.tree(late, steps=made.STEPS[2:])
    (lead,) = [s.lead for s in first(late).sentences if "not seen" in s.lead]
    step = made.STEPS[2]
    assert step > 0 and f"before step {step} " in lead


def test_births_are_counted_once_and_beside_controls_at_the_same_steps():
    data = made.joint_concepts()
    screen = first(made.tree({"joint-concepts": data}))
    born = int((data.concept_born.notnull() & (data.concept_kind == "born")).sum())
    (words,) = [w for w, value in numbers(screen).items() if value == str(born)]
    seen = re.fullmatch(r"concepts born, (\d+) comparable \(controls 0–2\)", words)
    assert int(seen[1]) == screen.concepts.born_seen < born
    data["explained_control"] = data.explained_control.fillna(0.5)
    everywhere = numbers(first(made.tree({"joint-concepts": data})))
    assert everywhere["concepts born (controls 0–2)"] == str(born)


def test_a_birth_that_is_not_confirmed_is_no_birth_anywhere():
    data = made.joint_concepts()
    place = tuple(np.argwhere((data.concept_kind == "born").values)[0])
    data["concept_born"][place] = np.nan
    screen = first(made.tree({"joint-concepts": data}))
    kinds = {each.place: each.kind for each in screen.concepts.every}
    assert kinds[place] == "birth not confirmed"
    assert len(screen.concepts.born) == sum(kind == "born" for kind in kinds.values())


def of_a_control():
    """A control run as the run: its loss rises, it has no control, nothing passes a line."""
    loss = made.loss_story(
        RISING, learned=False, beyond=False, controls=(), below=NEVER
    )
    concepts = made.joint_concepts(named=0, control=())
    return made.tree({"loss": loss, "joint-concepts": concepts}, controls=())


def of_a_control_with_names():
    """The same, with the few names that a turned run of the demo got: 3 of 59."""
    loss = made.loss_story(
        RISING, learned=False, beyond=False, controls=(), below=NEVER
    )
    concepts = made.joint_concepts(named=2, control=())
    return made.tree({"loss": loss, "joint-concepts": concepts}, controls=())


def still():
    loss = made.loss_story(
        np.full(len(made.STEPS), 8.31),
        changed=False,
        learned=False,
        beyond=False,
        below=NEVER,
    )
    return made.tree({"loss": loss, "joint-concepts": made.joint_concepts(named=0)})


def as_its_controls():
    """The loss falls, and no more than in control runs; as many concepts get a name."""
    loss = made.loss_story(learned=False, beyond=False, controls=(5.0, 5.1, 4.9))
    return made.tree(
        {"loss": loss, "joint-concepts": made.joint_concepts(named=2, control=(3, 4))}
    )


@pytest.mark.parametrize(
    "make", [of_a_control, of_a_control_with_names, still, as_its_controls]
)
def test_nothing_that_a_run_learned_is_said_of_one_that_did_not(make):
    assert not claimed(make(), Kind.LEARNED, Kind.BEYOND_MOTION)
    words = re.sub(
        "Whether loss improved by learning is (open|not tested)",
        "",
        said(first(make())),
    )
    assert "learned" not in words and "developed" not in words


def test_names_without_controls_are_said_to_have_none():
    lead = of_concepts(first(of_a_control_with_names())).lead
    assert lead == "4 of 22 concepts have a name; no control run was read."


def test_a_loss_that_rose_is_said_to_rise_and_is_no_use_of_context():
    screen = first(of_a_control())
    assert screen.heading.startswith("Loss rose")
    loss = screen.sentences[0]
    assert loss.direction == "rises" and "Use of context is not shown" in loss.text
    assert of_concepts(screen).lead == "22 concepts can be read; none has a name."
    assert "step: below word frequencies" not in numbers(screen)


def test_a_run_like_its_controls_stands_beside_what_they_reach():
    screen = first(as_its_controls())
    assert (
        "improved by learning:" not in said(screen)
        and "beyond controls is" not in screen.heading
    )
    assert (
        of_concepts(screen).lead == "4 of 22 concepts have a name (controls 6–8 of 22)."
    )


def test_names_of_controls_are_counted_over_the_concepts_of_controls():
    node = made.joint_concepts(named=6, control=(2, 1))
    few = xr.full_like(node.n_concepts_control, 3)
    node = node.assign(n_concepts_control=few)
    appeared = of_concepts(
        first(made.tree({"loss": made.loss_story(), "joint-concepts": node}))
    )
    assert appeared.lead == "12 of 22 concepts have a name (controls 2–4 of 6)."


@pytest.mark.parametrize(("layers", "named"), [(1, 1), (1, 3), (2, 12)])
def test_names_are_among_others_only_where_some_are_left_out(layers, named):
    node = made.joint_concepts(layers=layers, named=named)
    tree = made.tree({"loss": made.loss_story(), "joint-concepts": node})
    text = of_concepts(first(tree)).text
    names = {1: "The name is “", 3: "The names are “"}.get(named, "Among them are “")
    assert names in text
    has = "1 of 11 concepts has a name" if named == 1 else "concepts have a name"
    assert has in of_concepts(first(tree)).lead


def test_lines_with_one_name_in_one_layer_are_told_apart():
    node = made.joint_concepts(layers=1)
    node["name"][0, :2] = "space"
    lines = first(made.tree({"joint-concepts": node})).concepts.lines
    names = line_names(lines)
    assert len(set(names)) == len(names)
    assert {name[-2:] for name in names if name.startswith("space · ")} >= {"C0", "C1"}


def test_where_a_classifier_answers_its_accuracy_stands_in_place_of_a_loss():
    node = made.loss_story(lines=False)
    node = node.rename(
        {v: v.replace("loss", "accuracy") for v in node if v.startswith("loss")}
    )
    node.attrs["role"] = "development"
    node["row"] = ("row", ["accuracy"])
    for name in ("row_name", "row_quantity"):
        node[name] = ("row", ["accuracy"])
    screen = first(made.tree({"labels": node, "joint-concepts": made.joint_concepts()}))
    assert screen.heading.startswith("Accuracy improved by learning")
    assert "8.30" in screen.heading and "accuracy, was 8.300" in numbers(screen)


def test_without_a_loss_nothing_is_said_of_it():
    screen = first(made.tree({"joint-concepts": made.joint_concepts()}))
    assert screen.heading == "18 of 22 concepts have a name (controls 2–4 of 22)"
    assert "loss" not in said(screen) and "word frequencies" not in said(screen)
    assert not any("loss" in words for words in numbers(screen))


@pytest.mark.parametrize("losses", [[8.0, 5.0]])  # one alone: test_start_one_model
def test_few_checkpoints_have_no_course(losses):
    steps = made.STEPS[: len(losses)]
    below = (float(steps[0]),) * 3 if len(losses) == 1 else (1.0, 0.0, 1.0)
    loss = made.loss_story(
        losses, steps=steps, controls=(), learned=False, changed=False, below=below
    )
    screen = first(made.tree({"loss": loss}, steps=steps, controls=()))
    assert screen.heading == "2 checkpoints are too few to tell a change"
    assert "fell" not in said(screen) and "first" not in screen.heading
    assert screen.numbers[0].value == "5.00"


def test_a_loss_that_turns_says_where_with_an_interval_paired_over_texts():
    rng, losses = np.random.default_rng(0), np.linspace(8.0, 5.0, len(made.STEPS))
    losses[-5:] = [5.0, 5.001, 5.4, 5.5, 5.6]
    data = made.loss_story(losses)
    # Texts differ by far more.
    texts = rng.normal(0, 3, 60) + rng.normal(0, 0.1, (len(losses), 60))
    data["loss_of_text"] = (("step", "text"), losses[:, None] + texts)
    tree = made.tree({"loss": data})
    (claim,) = claimed(tree, Kind.RISES_AGAIN).values()
    low, high = made.STEPS[-5], made.STEPS[-4]
    assert (claim.since, claim.since_low, claim.since_high) == (low, low, high)
    assert claim.value == pytest.approx(0.6, abs=0.05)
    assert (
        f"lowest value at step {low:,} ({low:,}–{high:,})"
        in first(tree).sentences[0].text
    )


def rises(data):
    data = data.assign(loss=data.loss_of_text.mean("text"))
    return any(claim.kind is Kind.RISES_AGAIN for claim in claims_of_loss("loss", data))


def test_a_flat_loss_of_few_texts_is_rarely_said_to_rise():
    rng, steps, risen = np.random.default_rng(0), np.arange(12), 0
    for _ in range(200):
        texts = 5.0 + rng.normal(0, 1, (12, 4))
        data = xr.Dataset({"loss_of_text": (("step", "text"), texts)}, {"step": steps})
        risen += rises(data)
    assert risen <= 12
    assert not rises(data.isel(text=[0]))


def test_a_rise_by_less_than_a_hundredth_of_the_fall_is_not_named():
    """A loss of sums that are all right is next to nothing, and any rise a multiple of it."""
    steps = np.arange(12)
    fall = np.geomspace(4.0, 1e-6, 10)
    for last, is_named in ((0.001, False), (0.2, True)):
        texts = np.append(fall, [1e-6, last])[:, None] * np.ones(60)
        data = xr.Dataset({"loss_of_text": (("step", "text"), texts)}, {"step": steps})
        assert rises(data) == is_named


def test_failed_concepts_are_said_to_have_failed():
    failed = xr.Dataset(
        {
            "status": (
                ("step", "layer"),
                np.full((12, 1), "failed: out of memory", dtype=object),
            )
        },
        coords={"step": list(made.STEPS), "layer": ["model.layers.0.mlp"]},
    )
    tree = made.tree({"loss": made.loss_story(), "joint-concepts": failed})
    screen = first(tree)
    assert of_concepts(screen).text == "out of memory."
    assert not any("concepts" in words for words in numbers(screen))
    Page(render_page(read_content(tree)))


def test_without_controls_motion_is_not_tested():
    loss = made.loss_story(controls=(), learned=False, beyond=False)
    tree = made.tree(
        {"loss": loss, "joint-concepts": made.joint_concepts(control=())}, controls=()
    )
    claims = [
        c
        for c in read_content(tree).claims
        if c.kind in (Kind.LEARNED, Kind.BEYOND_MOTION)
    ]
    assert {claim.certainty for claim in claims} == {Certainty.NOT_TESTED}
    screen = first(tree)
    assert "not tested" in screen.heading
    assert "developed" not in said(screen) and "random directions" not in said(screen)
    # That it passed word frequencies has an interval of its own, over texts.
    assert "word frequencies" in claimed(tree, Kind.PASSES)


def test_a_line_that_is_not_surely_passed_is_no_landmark():
    tree = made.tree({"loss": made.loss_story(below=(64.0, 32.0, np.nan))})
    assert (
        not {"word frequencies", "its own word frequencies"}
        & claimed(tree, Kind.PASSES).keys()
    )
    reasons = {
        c.subject.label: c.reason
        for c in read_content(tree).claims
        if c.kind is Kind.PASSES
    }
    assert reasons["word frequencies"] is Reason.FEW_TEXTS
    screen = first(tree)
    assert "context" not in screen.heading and "word frequencies" not in screen.heading
    assert not any("word frequencies" in words for words in numbers(screen))


def of_frequencies():
    """Its loss passed the word frequencies of few texts, by those of a larger training text."""
    loss = made.loss_story(context=False, halves=((8.0, 16.0), (np.nan, np.nan)))
    return made.tree({"loss": loss})


def test_frequencies_learned_from_more_text_are_not_called_context():
    screen = first(of_frequencies())
    assert "context" not in screen.heading
    assert "Use of context is not shown" in screen.sentences[0].text
    assert numbers(screen)["step: below word frequencies"] == "16–32"


def test_what_came_first_is_said_only_where_intervals_are_apart():
    loss = made.loss_story(halves=((8.0, 64.0), (32.0, 64.0)))
    heading = first(made.tree({"loss": loss})).heading
    assert heading == "It learned word frequencies and context"


def test_a_result_without_own_frequencies_claims_no_context():
    screen = first(made.tree({"loss": made.loss_story(context=None)}))
    assert "context" not in said(screen) and "first" not in screen.heading


@pytest.mark.parametrize("below", [(64.0, 32.0, 128.0), NEVER])
def test_more_than_bigrams_is_said_only_beyond_the_own_bigrams(below):
    known = np.isfinite(below[0])
    last = (128.0, 128.0, 256.0) if known else NEVER
    lines = {"bigram": 5.5, "own_bigram": 5.5 if known else 4.5}
    loss = made.loss_story().assign(
        {f"loss_{line}": level for line, level in lines.items()}
        | {
            f"loss_below_{n}{e}": x
            for n in lines
            for e, x in zip(made.ENDS, below, strict=True)
        }
        | {
            f"loss_half_before{e}": x
            for e, x in zip(made.ENDS, (64.0, 32.0, 64.0), strict=True)
        }
        | {f"loss_half_context{e}": x for e, x in zip(made.ENDS, last, strict=True)}
    )
    screen = first(made.tree({"loss": loss}))
    gains = "the token before and context" if known else "the token before"
    assert screen.heading == f"It learned word frequencies first, then {gains}"
    # Its predictions are averaged: no model was shown that word alone.
    told = (
        "more than the word before: averaged for each such word, its predictions have"
    )
    assert (told in screen.sentences[0].text) == known


def test_concepts_that_were_not_named_are_counted_and_not_named():
    screen = first(made.learned(names=False))
    assert of_concepts(screen).lead.startswith("22 concepts can be read; none ")
    assert "18" in numbers(screen).values()


def test_names_that_could_not_be_given_are_not_called_unsharp():
    why = "there is no untrained model to compare with"
    data = made.joint_concepts(named=0).assign(unnamed_because=("layer", [why, why]))
    screen = first(made.tree({"loss": made.loss_story(), "joint-concepts": data}))
    assert why in of_concepts(screen).text
    assert "sharper" not in said(screen)
    assert "18" in numbers(screen).values()


def test_other_quantities_stand_in_for_concepts():
    screen = first(examples.developing_tree())
    (line,) = [line for line in screen.sentences if line.link == "#chart"]
    assert line.lead.startswith("16 of 18 other measures changed")


def test_results_without_loss_and_concepts_are_headed_by_their_rows():
    entropy = examples.developing_tree()["attention-entropy"].to_dataset()
    screen = first(xr.DataTree.from_dict({"attention-entropy": entropy}))
    assert screen.heading.startswith("4 of 6 measures changed")
    assert first(examples.plain_tree()) is None


def test_rows_of_an_earlier_version_without_values_are_open_and_have_a_page():
    tree = examples.developing_tree()
    for node in (
        "loss",
        "concepts-ica",
        "attention-entropy",
        "displacement",
        "concepts-pca",
    ):
        old = tree[node].to_dataset().drop_vars(["first_value", "last_value"])
        tree[node] = xr.DataTree(old)
    content = read_content(tree)
    assert not claimed(tree, Kind.CHANGED)
    reasons = {c.reason for c in content.claims if c.subject.node == "loss"}
    assert reasons == {Reason.EARLIER_VERSION}
    assert Page(render_page(content)).one(id="first")


def test_what_guesses_cost_is_named_by_the_dash_that_it_is_drawn_with():
    page = render_page(read_content(made.tree({"loss": made.loss_story()})))
    (dash,) = re.findall(r"\.life \.reference \{[^}]*stroke-dasharray: (\d+) ", page)
    assert int(dash) > 2, "three times as long as it is wide: no dot"
    assert "; dashed: what guesses cost" in Page(page).words
    without = Page(render_page(read_content(examples.controlled_tree()))).words
    assert "; dashed" not in without, "no guess is drawn there"


def test_the_page_says_how_sure_it_is_behind_the_first_screen():
    page = Page(render_page(read_content(made.learned())))
    assert page.one(id="verdict") and page.one(id="first") and page.one(id="atlas")
    assert "p of the gain" in page.words, (
        "that of chance alone does not bear out what was learned"
    )
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    assert [a for a in page.all("figure") if a.get("data-control")]


def test_a_certain_finding_on_the_first_or_last_step_stands_in_the_heading():
    tree = made.learned()
    before, (start, middle, *_, end) = first(tree).heading, map(int, made.STEPS)
    copies = examples.finding([start, end], "they hold the same weights")
    inside = examples.finding([middle], "this is one step in between")
    perhaps = examples.finding([end], "this is far", "suspected")
    tree.attrs["findings"] = json.dumps([inside, perhaps])
    assert first(tree).heading == before
    tree.attrs["findings"] = json.dumps([inside, copies])
    assert first(tree).heading == f"{before}; they hold the same weights"
