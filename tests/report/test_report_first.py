"""The first screen: every sentence is borne out by the result; none is said where none is."""

import itertools
import json
import re

import numpy as np
import pytest
import xarray as xr
from ontogeny.words.overview import overview

from helpers import concept_trees as made
from helpers import report_examples as examples
from helpers.report_page import Page
from ontogeny.report.concepts.lives import line_names
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.report.page.html import render_page
from ontogeny.words.content import read_content
from ontogeny.words.landmarks import _lowest

CLAIMS = re.compile(
    r"It learned|predicts better|Control runs do not"
    r"|[1-9]\d* of \d+ concepts got a name \(in controls [\d–]+ of \d+\)\. Among"
)
"""What may be said of a run only that learned something."""

RISING = np.linspace(8.3, 8.7, len(made.STEPS))
NEVER = (np.nan, np.nan, np.nan)


def first(tree):
    return first_screen(read_content(tree))


def said(screen):
    parts = [f"{s.lead} {s.text}" for s in screen.sentences]
    return " ".join([screen.heading, *parts])


def numbers(screen):
    return {each.words: each.value for each in screen.numbers}


def test_a_run_that_learned_is_told_in_the_order_of_its_landmarks():
    screen = first(made.learned())
    assert screen.heading == (
        "It learned word frequencies first (half of this gain by step 16), then context (half by "
        "step 64)"
    )
    ability, appeared, control = screen.sentences
    assert ability.lead == "It predicts better than word frequencies."
    average = "Its average prediction, without context, would cost 5.70"
    assert ability.text == f"{average}: the other 0.70 come from context."
    assert ability.direction == "falls"
    assert appeared.lead == "18 of 22 concepts got a name (in controls 2–4 of 22)."
    assert control.lead == "Control runs do not learn to predict."
    assert control.text == (
        "They start from the same weights and move as far at every step, in random directions: "
        "a change like theirs may be motion alone. Their loss went to 8.40–8.70."
    )
    assert numbers(screen) == {
        "loss, was 8.30": "5.00",
        "concepts born, at steps 1–400; counted at the 4 checkpoints of the controls: 8 here, 0–2 "
        "in controls": "18",
        "step: better than word frequencies": "16–32",
        "findings of the audit": "0",
    }


def test_names_that_are_said_are_those_of_the_sharpest_concepts():
    tree = made.learned()
    data = tree["joint-concepts"].to_dataset()
    order = np.argsort(-data.concentration.values, axis=None)
    wanted = [n for n in data.name.values.ravel()[order] if n]
    text = first(tree).sentences[1].text
    assert re.findall(r"“(.+?)”", text) == list(dict.fromkeys(wanted))[:3]


def test_a_run_without_step_0_says_what_cannot_be_seen():
    tree = made.learned()
    assert not any("seen from" in sentence.lead for sentence in first(tree).sentences)
    late = {name: node.dataset.isel(step=slice(2, None)) for name, node in tree.children.items()}
    late = made.tree(late, steps=made.STEPS[2:])
    (lead,) = [s.lead for s in first(late).sentences if "seen from" in s.lead]
    step = made.STEPS[2]
    assert step > 0 and lead == f"It is seen from step {step} on:"


def test_births_are_counted_once_and_beside_controls_at_the_same_steps():
    data = made.joint_concepts()
    screen = first(made.tree({"joint-concepts": data}))
    born = int((data.concept_born.notnull() & (data.concept_kind == "born")).sum())
    (words,) = [w for w, value in numbers(screen).items() if value == str(born)]
    low, high = (
        float(f(data[f"concept_born_{end}"]))
        for f, end in ((np.nanmin, "after"), (np.nanmax, "before"))
    )
    assert words.startswith(f"concepts born, at steps {low:.0f}–{high:.0f}")
    seen = re.search(r"at the 4 checkpoints of the controls: (\d+) here, 0–2 in controls", words)
    assert int(seen[1]) == screen.concepts.born_seen < born
    data["explained_control"] = data.explained_control.fillna(0.5)
    everywhere = numbers(first(made.tree({"joint-concepts": data})))
    assert everywhere[f"concepts born, at steps {low:.0f}–{high:.0f}; in controls 0–2"] == str(born)


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
    loss = made.loss_story(RISING, learned=False, beyond=False, controls=(), below=NEVER)
    concepts = made.joint_concepts(named=0, control=())
    return made.tree({"loss": loss, "joint-concepts": concepts}, controls=())


def of_a_control_with_names():
    """The same, with the few names that a turned run of the demo got: 3 of 59."""
    loss = made.loss_story(RISING, learned=False, beyond=False, controls=(), below=NEVER)
    concepts = made.joint_concepts(named=2, control=())
    return made.tree({"loss": loss, "joint-concepts": concepts}, controls=())


def still():
    loss = made.loss_story(
        np.full(len(made.STEPS), 8.31), changed=False, learned=False, beyond=False, below=NEVER
    )
    return made.tree({"loss": loss, "joint-concepts": made.joint_concepts(named=0)})


def as_its_controls():
    """The loss falls, and no more than in control runs; as many concepts get a name."""
    loss = made.loss_story(learned=False, beyond=False, controls=(5.0, 5.1, 4.9))
    return made.tree({"loss": loss, "joint-concepts": made.joint_concepts(named=2, control=(3, 4))})


@pytest.mark.parametrize("make", [of_a_control, of_a_control_with_names, still, as_its_controls])
def test_nothing_that_a_run_learned_is_said_of_one_that_did_not(make):
    words = said(first(make()))
    assert not CLAIMS.search(words)
    assert "learned" not in words and "developed" not in words


def test_names_without_controls_are_said_to_be_what_motion_may_give():
    lead = first(of_a_control_with_names()).sentences[1].lead
    assert lead == "4 of 22 concepts got a name; motion alone may give as many."


def test_a_control_as_the_run_is_said_to_predict_worse():
    screen = first(of_a_control())
    assert screen.heading == "The loss rose: the model predicts worse than at first"
    assert screen.sentences[0].lead == "It predicts worse than at first."
    assert screen.sentences[0].direction == "rises"
    assert "never below 6.32, the loss of word frequencies" in screen.sentences[0].text
    assert screen.sentences[1].lead == "No concept is sharper than in the untrained model."
    assert numbers(screen)["better than word frequencies"] == "never"


def test_a_run_like_its_controls_did_no_better():
    screen = first(as_its_controls())
    assert screen.heading == "The loss is not shown to have fallen by more than in control runs"
    assert screen.sentences[0].lead == "It is not shown to predict better than motion gives."
    assert screen.sentences[1].lead == "No more concepts got a name than in control runs."
    assert screen.sentences[1].text.startswith("4 of 22 concepts got a name (in controls 6–8")
    assert screen.sentences[2].lead == "The loss is not shown to do better than in control runs."


def test_a_smaller_share_of_named_concepts_than_in_control_runs_is_said():
    node = made.joint_concepts(named=6, control=(2, 1))
    few = xr.full_like(node.n_concepts_control, 3)
    node = node.assign(n_concepts_control=few)
    appeared = first(made.tree({"loss": made.loss_story(), "joint-concepts": node})).sentences[1]
    assert appeared.lead == "12 of 22 concepts got a name (in controls 2–4 of 6)."
    assert appeared.text.startswith(
        "That is not a larger share of the concepts that can be read than in"
    )


def test_layers_in_which_no_larger_share_got_a_name_are_said_beside_the_sum():
    node = made.joint_concepts(named=6, control=(2, 1))
    totals = xr.zeros_like(node.n_concepts_control) + xr.DataArray([3, 11], dims="layer")
    node = node.assign(n_concepts_control=totals, n_concepts=("layer", [11, 11]))
    appeared = first(made.tree({"loss": made.loss_story(), "joint-concepts": node})).sentences[1]
    assert appeared.lead == "12 of 22 concepts got a name (in controls 2–4 of 14)."
    assert appeared.text.startswith("In layer 0 the share is no larger. Among them")


@pytest.mark.parametrize(("layers", "named"), [(1, 1), (1, 3), (2, 12)])
def test_names_are_among_others_only_where_some_are_left_out(layers, named):
    node = made.joint_concepts(layers=layers, named=named)
    text = first(made.tree({"joint-concepts": node})).sentences[1].text
    assert {1: "Its name is “", 3: "The names are “"}.get(named, "Among them “") in text


def test_lines_with_one_name_in_one_layer_are_told_apart():
    node = made.joint_concepts(layers=1)
    node["name"][0, :2] = "space"
    lines = first(made.tree({"joint-concepts": node})).concepts.lines
    names = line_names(lines)
    assert len(set(names)) == len(names)
    assert {name[-2:] for name in names if name.startswith("space · ")} >= {"C0", "C1"}


def test_where_a_classifier_answers_its_accuracy_stands_in_place_of_a_loss():
    node = made.loss_story(lines=False)
    node = node.rename({v: v.replace("loss", "accuracy") for v in node if v.startswith("loss")})
    node.attrs["role"] = "development"
    node["row"] = ("row", ["accuracy"])
    node["row_quantity"] = ("row", ["accuracy"])
    screen = first(made.tree({"labels": node, "joint-concepts": made.joint_concepts()}))
    assert screen.heading.startswith("Accuracy was learned")
    assert "not measured" not in said(screen) and "8.3" in screen.sentences[0].lead


def test_without_a_loss_nothing_is_said_of_it():
    tree = made.tree({"joint-concepts": made.joint_concepts()})
    screen = first(tree)
    assert screen.heading == "18 of 22 concepts got a name; the loss was not measured"
    assert screen.sentences[0].lead == "The loss was not measured,"
    assert numbers(screen)["loss was not measured"] == "–"
    assert "word frequencies" not in said(screen)
    assert "Nothing could be compared with control runs." in said(screen)


@pytest.mark.parametrize("losses", [[8.0, 5.0]])  # one alone: test_start_one_model
def test_few_checkpoints_have_no_course(losses):
    steps = made.STEPS[: len(losses)]
    below = (float(steps[0]),) * 3 if len(losses) == 1 else (1.0, 0.0, 1.0)
    loss = made.loss_story(
        losses, steps=steps, controls=(), learned=False, changed=False, below=below
    )
    screen = first(made.tree({"loss": loss}, steps=steps, controls=()))
    heading = (
        "It predicts better than word frequencies at the last checkpoint; no trend of its loss "
        "can be told"
    )
    assert screen.heading == heading
    assert "fell" not in said(screen) and "first" not in screen.heading
    assert screen.numbers[0].value == "5.00"


def test_a_loss_that_turns_says_where_with_an_interval_paired_over_texts():
    rng, losses = np.random.default_rng(0), np.linspace(8.0, 5.0, len(made.STEPS))
    losses[-5:] = [5.0, 5.001, 5.4, 5.5, 5.6]
    data = made.loss_story(losses)
    texts = rng.normal(0, 3, 60) + rng.normal(0, 0.1, (len(losses), 60))  # texts differ by far more
    data["loss_of_text"] = (("step", "text"), losses[:, None] + texts)
    text = first(made.tree({"loss": data})).sentences[0].text
    low, high = made.STEPS[-5], made.STEPS[-4]
    where = f"at step {low:,} ({low:,}–{high:,})"
    assert text.startswith(f"Its loss was lowest, 5.00, {where}, and has risen by 0.60 since."), (
        text
    )


def test_a_flat_loss_of_few_texts_is_rarely_said_to_rise():
    rng, steps, risen = np.random.default_rng(0), np.arange(12), 0
    for _ in range(200):
        texts = 5.0 + rng.normal(0, 1, (12, 4))
        data = xr.Dataset({"loss_of_text": (("step", "text"), texts)}, {"step": steps})
        risen += _lowest(data, texts.mean(1), steps)["rises"]
    assert risen <= 12
    one = data.isel(text=[0])
    assert not _lowest(one, one.loss_of_text.values[:, 0], steps)["rises"]


def test_failed_concepts_are_said_to_have_failed():
    failed = xr.Dataset(
        {"status": (("step", "layer"), np.full((12, 1), "failed: out of memory", dtype=object))},
        coords={"step": list(made.STEPS), "layer": ["model.layers.0.mlp"]},
    )
    tree = made.tree({"loss": made.loss_story(), "joint-concepts": failed})
    screen = first(tree)
    assert "Concepts could not be computed: failed: out of memory." in said(screen)
    assert numbers(screen)["births of concepts were not measured"] == "–"
    Page(render_page(read_content(tree)))


def test_without_controls_changes_may_be_mere_motion():
    loss = made.loss_story(controls=(), learned=False, beyond=False)
    tree = made.tree({"loss": loss, "joint-concepts": made.joint_concepts(control=())}, controls=())
    screen = first(tree)
    third = screen.sentences[2]
    assert f"{third.lead} {third.text}" == ("No control was run: changes below may be mere motion.")
    assert "developed" not in said(screen) and "Control runs do not" not in said(screen)
    # That it passed word frequencies has an interval of its own, over texts.
    assert screen.sentences[0].lead == "It predicts better than word frequencies."


def test_a_line_that_is_not_surely_passed_is_no_landmark():
    tree = made.tree({"loss": made.loss_story(below=(64.0, 32.0, np.nan))})
    screen = first(tree)
    assert screen.heading == "The loss fell, but not surely below that of word frequencies"
    assert "not surely on others" in screen.sentences[0].text
    assert numbers(screen)["better than word frequencies"] == "not surely"


def of_frequencies():
    """Its loss passed the word frequencies of few texts, by those of a larger training text."""
    loss = made.loss_story(context=False, halves=((8.0, 16.0), (np.nan, np.nan)))
    return made.tree({"loss": loss})


def test_frequencies_learned_from_more_text_are_not_called_context():
    screen = first(of_frequencies())
    assert screen.heading == "It learned word frequencies, with no sure use of context"
    assert screen.sentences[0].lead == "It knows how often words occur."
    assert "does not surely use context" in screen.sentences[0].text
    assert "better" not in said(screen)
    assert numbers(screen)["step: loss below word frequencies"] == "16–32"


def test_what_came_first_is_said_only_where_intervals_are_apart():
    loss = made.loss_story(halves=((8.0, 64.0), (32.0, 64.0)))
    heading = first(made.tree({"loss": loss})).heading
    assert heading == "It learned word frequencies and context"


def test_a_result_without_own_frequencies_claims_no_context():
    screen = first(made.tree({"loss": made.loss_story(context=None)}))
    assert screen.heading == "The loss fell below that of word frequencies"
    assert "better" not in said(screen)


PAIRS = (
    "It learned word frequencies first (half of this gain by step 16), then {}which token follows "
    "which (half by step 64)"
)


@pytest.mark.parametrize(
    ("below", "lead", "words"),
    [
        (
            (64.0, 32.0, 128.0),
            "bigrams",
            f"{PAIRS.format('')}, then more of the context (half by step 128)",
        ),
        (NEVER, "word frequencies", PAIRS.format("in part ")),
    ],
)
def test_more_than_bigrams_is_said_only_beyond_the_own_bigrams(below, lead, words):
    known = np.isfinite(below[0])
    last = (128.0, 128.0, 256.0) if known else NEVER
    lines = {"bigram": 5.5, "own_bigram": 5.5 if known else 4.5}
    loss = made.loss_story().assign(
        {f"loss_{line}": level for line, level in lines.items()}
        | {f"loss_below_{n}{e}": x for n in lines for e, x in zip(made.ENDS, below, strict=True)}
        | {f"loss_half_before{e}": x for e, x in zip(made.ENDS, (64.0, 32.0, 64.0), strict=True)}
        | {f"loss_half_context{e}": x for e, x in zip(made.ENDS, last, strict=True)}
    )
    screen = first(made.tree({"loss": loss}))
    assert screen.heading == words
    assert screen.sentences[0].lead == f"It predicts better than {lead}."


def test_concepts_that_were_not_named_are_counted_and_not_named():
    screen = first(made.learned(names=False))
    assert screen.sentences[1].lead == "22 concepts can be read; none was named."
    assert "18" in numbers(screen).values()


def test_names_that_could_not_be_given_are_not_called_unsharp():
    why = "there is no untrained model to compare with"
    data = made.joint_concepts(named=0).assign(unnamed_because=("layer", [why, why]))
    screen = first(made.tree({"loss": made.loss_story(), "joint-concepts": data}))
    assert f"No name could be given: {why}." in screen.sentences[1].text
    assert "sharper" not in said(screen)
    assert "18" in numbers(screen).values()


def test_other_quantities_stand_in_for_concepts():
    screen = first(examples.developing_tree())
    assert re.match(r"\d+ of 18 further rows of the chart changed", screen.sentences[1].lead)
    assert "Concepts were fitted to each checkpoint by itself" in screen.sentences[1].text
    tree = examples.developing_tree()
    without = tree.filter(lambda node: "concepts-" not in node.path)
    assert "No concepts were fitted." in first(without).sentences[1].text
    alone = made.tree({"loss": made.loss_story()})
    assert first(alone).sentences[1].text == "No other quantity could be judged."
    unjudged = {"judgeable": ("row", [False])}
    alone = made.tree({"loss": made.loss_story(learned=False, changed=False).assign(unjudged)})
    assert first(alone).sentences[1].text == "No quantity could be judged."


def test_comparisons_and_results_without_loss_and_concepts_keep_the_overview():
    entropy = examples.developing_tree()["attention-entropy"].to_dataset()
    assert first(xr.DataTree.from_dict({"attention-entropy": entropy})) is None
    tree = examples.developing_tree()
    tree.attrs["headline"] = json.dumps({"heading": "Both seeds agree"})
    assert first(tree) is None


def test_a_claim_of_the_learned_run_is_found_where_it_is_made():
    assert len(CLAIMS.findall(said(first(made.learned())))) == 4


def test_what_guesses_cost_is_named_by_the_dash_that_it_is_drawn_with():
    page = render_page(read_content(examples.controlled_tree()))
    (dash,) = re.findall(r"\.life \.reference \{[^}]*stroke-dasharray: (\d+) ", page)
    assert int(dash) > 2, "three times as long as it is wide: no dot"
    assert "; dashed: what guesses cost" in Page(page).words


def test_the_page_keeps_its_verdict_behind_the_first_screen():
    page = Page(render_page(read_content(made.learned())))
    assert page.one(id="verdict")["data-learned"] == "1"
    assert page.one(id="first") and page.one(id="atlas")
    assert "p of the gain" in page.words, "that of chance alone does not bear out what was learned"
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    assert [a for a in page.all("figure") if a.get("data-control")]
    assert page.words.index("It learned word frequencies first") < page.words.index(
        "Loss was learned"
    )


@pytest.mark.parametrize("of", [first, lambda tree: overview(read_content(tree))])
def test_a_certain_finding_on_the_first_or_last_step_stands_in_the_headline(of):
    tree = made.learned()
    before, (start, middle, *_, end) = of(tree).heading, map(int, made.STEPS)
    copies = examples.finding([start, end], "they hold the same weights")
    inside = examples.finding([middle], "this is one step in between")
    perhaps = examples.finding([end], "this is far", "suspected")
    tree.attrs["findings"] = json.dumps([inside, perhaps])
    assert of(tree).heading == before
    tree.attrs["findings"] = json.dumps([inside, copies])
    assert of(tree).heading == f"{before}; they hold the same weights"
